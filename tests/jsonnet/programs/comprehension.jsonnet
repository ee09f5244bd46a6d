local bucket(name, days) = {
  apiVersion: "influxdata.com/v2alpha1", kind: "Bucket", metadata: { name: name },
  spec: { retentionRules: [{ type: "expire", everySeconds: days * 24 * 3600 }] },
};
[bucket("b-%02d" % i, i) for i in std.range(1, 20)]
