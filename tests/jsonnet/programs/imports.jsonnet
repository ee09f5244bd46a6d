local common = import "lib/common.libsonnet";
[common.label("one", "#ff0000"), common.task("two", importstr "lib/query.flux")]
