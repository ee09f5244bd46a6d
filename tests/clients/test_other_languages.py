"""The section of docs/clients.md about languages without an example: managed mode sets their package options."""

import sys
from pathlib import Path

import pytest

from tests import needs
from tests.clients.page import blocks, shell
from tests.ports import Home

PLUGIN = f"""#!{sys.executable}
import sys
from google.protobuf.compiler import plugin_pb2

request = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
answer = plugin_pb2.CodeGeneratorResponse(supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL)
for file in request.proto_file:
    answer.file.add(name=file.name + ".txt", content=str(file.options))
sys.stdout.buffer.write(answer.SerializeToString())
"""
"""A plugin that writes the options of each proto file, in place of protoc's Java plugin."""


@pytest.mark.slow
@needs.program("buf")
async def test_plugins_get_the_package_options_of_their_languages(home: Home, tmp_path: Path) -> None:
    (config,), (command,) = blocks("Other languages", "yaml"), blocks("Other languages")
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    (tmp_path / "buf.gen.yaml").write_text(config.replace("protoc_builtin: java", "local: ./plugin"))

    status, _, errors = await shell(command, home, tmp_path)

    assert (status, errors) == (0, "")
    options = (tmp_path / "gen/pkger/planner/v1/planner.proto.txt").read_text().splitlines()
    assert 'java_package: "com.pkger.planner.v1"' in options
    assert "java_multiple_files: true" in options
    assert 'csharp_namespace: "Pkger.Planner.V1"' in options
