local add(a, b=10) = a + b, twice(f) = function(x) f(f(x));
local kind = if add(1) == 11 then "Label" else error "never";
[add(1), add(b=1, a=2), twice(function(x) x + 1)(1), kind, if false then 1, std.type(null), std.isString("a"),
 std.manifestJsonEx({ a: [1, {}] }, "  "), std.base64("a"), std.md5("a"), std.clamp(5, 1, 3), std.get({ a: 1 }, "b", "none")]
