from(bucket: "é")
  |> range(start: -1h)
