["a\tb\n\u00e9\ud83d\ude00\\", 'single "quotes"', @"raw \n", |||
  block
    indented é
|||, std.length("é😀"), std.toString({ b: 1, a: [1.5, true, null] }), "a" + 1 + [2], std.char(233), std.codepoint("é"),
 std.asciiUpper("abcé"), std.split("a,b,c", ","), std.join("-", ["a", "b"]), std.strReplace("aXbX", "X", "yy"),
 std.escapeStringJson("a\"\n"), std.substr("héllo", 1, 3), std.startsWith("abc", "ab"), std.parseInt("-12"), "é"[0]]
