local base = { name: "base", tags:: ["hidden"], spec: { a: 1, nested: { x: 1 } }, shown: self.name + "!" };
local more = base { name: "more", spec+: { b: 2, nested+: { y: $.name } }, [if true then "dynamic"]: 1, [null]: 2 };
[base, more, more { spec: super.spec { c: 3 } }, std.objectFields(more), std.objectHasAll(more, "tags"),
 std.mergePatch({ a: 1, b: 2 }, { b: null, c: 3 }), { [k]: k + "!" for k in ["x", "y"] }, more == more, "a" in { a: 1 },
 { assert self.a == 1, a: 1 }, std.prune({ a: null, b: [] , c: 1 }), { a: 1 } + { a+: 2 }]
