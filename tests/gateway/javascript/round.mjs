// What a program does with packages and stacks, in the words of InfluxDB's client for JavaScript.
// Called with the address of the gateway, a token, and a file with a list of packages, each a list of objects.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { HttpError, InfluxDB } from "@influxdata/influxdb-client";
import { HealthAPI, MeAPI, OrgsAPI, PingAPI, ReadyAPI, StacksAPI, TemplatesAPI } from "@influxdata/influxdb-client-apis";

const [url, token, file] = process.argv.slice(2);
const packages = JSON.parse(readFileSync(file, "utf8"));

const influx = new InfluxDB({ url, token });
const templates = new TemplatesAPI(influx);
const stacks = new StacksAPI(influx);

assert.equal((await new HealthAPI(influx).getHealth()).status, "pass");
assert.equal((await new ReadyAPI(influx).getReady()).status, "ready");
await new PingAPI(influx).getPing();
assert.equal((await new MeAPI(influx).getMe()).name, "tester");

const orgs = new OrgsAPI(influx);
const [org] = (await orgs.getOrgs({ org: "example" })).orgs;
assert.equal((await orgs.getOrgsID({ orgID: org.id })).name, "example");

const stack = await stacks.createStack({ body: { orgID: org.id, name: "first", urls: [] } });
for (const contents of packages) {
  const body = { orgID: org.id, stackID: stack.id, template: { contents }, secrets: { tok: "value" } };
  const shown = await templates.applyTemplate({ body: { ...body, dryRun: true } });
  const done = await templates.applyTemplate({ body });
  assert.deepEqual([shown.stackID, done.stackID], [stack.id, stack.id]);
  const names = contents.map((object) => object.metadata.name);
  assert.ok(done.summary.labels.every((label) => names.includes(label.templateMetaName)));
}

const [listed] = (await stacks.listStacks({ orgID: org.id, name: "first" })).stacks;
assert.equal(listed.id, stack.id);
const last = packages.at(-1).length;
assert.equal((await stacks.readStack({ stack_id: stack.id })).events.at(-1).resources.length, last);
const updated = await stacks.updateStack({ stack_id: stack.id, body: { description: "words" } });
assert.equal(updated.events.at(-1).description, "words");

assert.equal((await templates.exportTemplate({ body: { stackID: stack.id } })).length, last);
const all = await templates.exportTemplate({ body: { orgIDs: [{ orgID: org.id }] } });
assert.ok(all.length >= last);

const refused = { orgID: org.id, template: { contents: [{ kind: "Labl" }] } };
const error = await templates.applyTemplate({ body: refused }).catch((caught) => caught);
assert.ok(error instanceof HttpError);
assert.deepEqual([error.statusCode, error.code], [422, "unprocessable entity"]);

const gone = await stacks.uninstallStack({ stack_id: stack.id });
assert.equal(gone.events.at(-1).eventType, "uninstall");
await stacks.deleteStack({ stack_id: stack.id, orgID: org.id });
assert.deepEqual((await stacks.listStacks({ orgID: org.id })).stacks, []);
