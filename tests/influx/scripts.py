"""
The scripts that the server makes of checks and rules.

They have the content of the real ones in the same order. The pipeline of a check is included as it was sent; the
real server rewrites its times and formats it.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests.influx import flux
from tests.influx.flux_format import formatted
from tests.influx.problem import Problem
from tests.influx.state import Resource

_CHECK = re.compile(r"\bcheck\s*=\s*\{")


def of_check(check: Resource) -> str:
    """
    The script of a check.

    Raises:
        flux.FluxError: A part of the check does not fit into a script.
    """
    text = check["query"]["text"]
    if check["type"] == "custom":
        flux.tokens(text)
        return str(text)
    found = flux.tokens(text)
    fields = flux.fields(found)
    if check["type"] == "threshold" and len(fields) != 1:
        raise flux.FluxError(f"expected a single field but got: [{' '.join(fields)}]")
    if not found:
        raise flux.FluxError("the query is empty")
    if check["type"] == "deadman" and check["timeSince"] is None:
        raise flux.FluxError("missing field `values`")
    for tag in check["tags"] or ():
        if not flux.is_identifier(tag["key"]):
            raise flux.FluxError(f"unexpected token for property key: {tag['key']}")
    tags = ", ".join(f"{tag['key']}: {flux.quoted(tag['value'])}" for tag in check["tags"] or ())
    name = flux.quoted(check["name"])
    own = f'_check_id: "{check["id"]}", _check_name: {name}, _type: "{check["type"]}", tags: {{{tags}}}'
    deadman = 'import "experimental"\n' if check["type"] == "deadman" else ""
    script = (
        f'import "influxdata/influxdb/monitor"\n{deadman}import "influxdata/influxdb/v1"\n\n'
        f"data =\n{text}\n\n{_option(check)}\n\ncheck = {{{own}}}\n{_levels(check, fields)}"
        f"messageFn = (r) => {flux.quoted(check['statusMessageTemplate'])}\n\n"
        'data |> v1["fieldsAsCols"]() |> monitor["check"](data: check, messageFn: messageFn)\n'
    )
    flux.tokens(script)
    return script


def of_rule(rule: Resource, endpoint: Resource) -> str:
    """The script of a rule that notifies this endpoint."""
    own: dict[str, str] = {
        "_notification_rule_id": rule["id"],
        "_notification_rule_name": rule["name"],
        "_notification_endpoint_id": endpoint["id"],
        "_notification_endpoint_name": endpoint["name"],
    }
    notification = "".join(f"    {key}: {flux.quoted(value)},\n" for key, value in own.items())
    secrets = [value for key, value in sorted(endpoint.items()) if str(value).startswith("secret: ")]
    reads = "".join(
        f's{place} = secrets["get"](key: {flux.quoted(value.removeprefix("secret: "))})\n'
        for place, value in enumerate(secrets)
    )
    levels = "".join(_status_rule(place, each) for place, each in enumerate(rule["statusRules"] or ()))
    tags = " and ".join(
        f"r[{flux.quoted(each['key'])}] == {flux.quoted(each['value'])}" for each in rule["tagRules"] or ()
    )
    condition = f", fn: (r) => {tags}" if tags else ""
    url = flux.quoted(endpoint.get("url") or endpoint.get("clientURL") or "")
    message = flux.quoted(rule.get("messageTemplate") or "")
    return (
        f'import "influxdata/influxdb/monitor"\nimport "{rule["type"]}"\nimport "influxdata/influxdb/secrets"\n'
        f'import "experimental"\n\n{_option(rule)}\n\n{reads}'
        f'endpoint = {rule["type"]}["endpoint"](url: {url})\nnotification = {{\n{notification}}}\n'
        f'statuses = monitor["from"](start: -{rule["every"]}{condition})\n{levels}'
        f"messageFn = (r) => {message}\n"
        'all_statuses |> monitor["notify"](data: notification, endpoint: endpoint)\n'
    )


def of_custom_check(check: Resource, text: str) -> str:
    """
    The script of a custom check, with the id of the check, and formatted.

    A script with unclosed brackets or texts is returned unchanged.
    """
    if not _CHECK.search(text):
        raise Problem("invalid", "Custom flux must have an object called 'check'")
    try:
        tokens = flux.tokens(text)
    except flux.FluxError:
        return text
    record = next(flux.records(tokens, "check", "="), None)
    if record is None:
        raise Problem("invalid", "Custom flux must have an object called 'check'")
    found = flux.properties(record)
    if _value(found, "_check_name") != check["name"]:
        raise Problem("invalid", "_check_name parameter on check object must match check name")
    if _value(found, "_type") != "custom":
        raise Problem("invalid", "_type parameter on check object must be set to 'custom'")
    option = next(flux.records(tokens, "option", "task", "="), None)
    options = flux.properties(option) if option else {}
    for key in ("every", "offset"):
        if key not in options:
            raise Problem("invalid", f"Custom flux missing {key} parameter from task option statement")
    if _value(options, "name") != check["name"]:
        raise Problem("invalid", "name parameter on task option must match check name")
    own = f'"{check["id"]}"'
    if "_check_id" in found:
        start, end = found["_check_id"][0].start, found["_check_id"][-1].end
        return formatted(text[:start] + own + text[end:])
    start = record[0].end
    return formatted(f"{text[:start]}_check_id: {own}, {text[start:]}")


def _value(record: Mapping[str, list[flux.Token]], key: str) -> str | None:
    tokens = record.get(key, [])
    return flux.unquoted(tokens[0].text) if flux.is_text(tokens) else None


def _option(item: Mapping[str, Any]) -> str:
    offset = f", offset: {item['offset']}" if item["offset"] else ""
    return f"option task = {{name: {flux.quoted(item['name'])}, every: {item['every']}{offset}}}"


def _levels(check: Resource, fields: list[str]) -> str:
    if check["type"] == "deadman":
        return f'{check["level"].lower()} = (r) => r["dead"]\n'
    return "".join(_threshold(each, f"r[{flux.quoted(fields[0])}]") for each in check["thresholds"] or ())


def _threshold(each: Mapping[str, Any], field: str) -> str:
    if each["type"] == "range":
        low, high = float(each["min"]), float(each["max"])
        inside, outside = f"{field} < {high} and {field} > {low}", f"{field} < {low} or {field} > {high}"
        test = inside if each["within"] else outside
    else:
        test = f"{field} {'>' if each['type'] == 'greater' else '<'} {float(each['value'])}"
    return f"{each['level'].lower()} = (r) => {test}\n"


def _status_rule(place: int, rule: Mapping[str, Any]) -> str:
    current = rule["currentLevel"].lower()
    if rule["previousLevel"]:
        previous = rule["previousLevel"].lower()
        return f's{place} = statuses |> monitor["stateChanges"](fromLevel: "{previous}", toLevel: "{current}")\n'
    return f's{place} = statuses |> filter(fn: (r) => r["_level"] == "{current}")\n'
