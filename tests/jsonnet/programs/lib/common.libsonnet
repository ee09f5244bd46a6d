local object(kind, name, spec) = { apiVersion: "influxdata.com/v2alpha1", kind: kind, metadata: { name: name }, spec: spec };
{
  label(name, color):: object("Label", name, { color: color }),
  task(name, query):: object("Task", name, { every: "1h", query: query }),
}
