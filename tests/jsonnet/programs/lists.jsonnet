[std.map(function(x) x * x, [1, 2, 3]), std.filter(function(x) x > 1, [1, 2, 3]), std.foldl(function(a, b) a + b, [1, 2], 0),
 std.sort([3, 1, 2]), std.uniq([1, 1, 2]), std.set(["b", "a", "b"]), std.flattenArrays([[1], [2, 3]]), std.reverse([1, 2]),
 [x + y for x in [1, 2] for y in [10, 20] if x + y != 12], [1, 2, 3, 4, 5][1:4:2], std.makeArray(3, function(i) i),
 std.mapWithIndex(function(i, x) [i, x], ["a"]), std.count([1, 2, 1], 1), std.member([1], 1), std.repeat([1], 3),
 std.sort([{ k: 2 }, { k: 1 }], function(x) x.k), std.setUnion([1], [2]), std.range(3, 1)]
