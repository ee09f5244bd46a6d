// Plans a package, applies the plan, watches the apply, shows the resources of the stack, and deletes the stack under a watch.
import { readFile } from "node:fs/promises";
import process from "node:process";

import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { ApplierService } from "./gen/pkger/applier/v1/applier_pb.js";
import { type OperationEvent, OperationState } from "./gen/pkger/model/v1/operation_pb.js";
import { AfterUninstall } from "./gen/pkger/model/v1/plan_pb.js";
import { PlannerService } from "./gen/pkger/planner/v1/planner_pb.js";
import { StackService, type WatchStackResponse } from "./gen/pkger/stack/v1/stack_pb.js";

const stack = { name: "fleet" };

/** Sends the token with each call. */
const token: Interceptor = (next) => (request) => {
  request.header.set("Authorization", `Bearer ${process.env.PKGER_TOKEN ?? ""}`);
  return next(request);
};

const planner = createClient(PlannerService, connect("PKGER_PLANNER_ADDRESS", "127.0.0.1:50052"));
const applier = createClient(ApplierService, connect("PKGER_APPLIER_ADDRESS", "127.0.0.1:50053"));
const stacks = createClient(StackService, connect("PKGER_STACK_ADDRESS", "127.0.0.1:50054"));

/** A gRPC channel to the address in the environment variable, or to the default one. */
function connect(variable: string, address: string) {
  return createGrpcTransport({ baseUrl: `http://${process.env[variable] ?? address}`, interceptors: [token] });
}

/** Stores a plan for the package in the files, prints how many steps of each kind it has, and returns its id. */
async function createPlan(files: string[]): Promise<string> {
  const sources = await Promise.all(
    files.map(async (name) => ({ name, content: { case: "text" as const, value: await readFile(name, "utf8") } })),
  );
  const place = { case: "stack" as const, value: stack };
  for await (const { answer } of planner.createPlan({ place, desired: { case: "package", value: { sources } } })) {
    if (answer.case === "violations") {
      throw new Error(`the package is invalid: ${answer.value.violations.map((violation) => violation.reason)}`);
    }
    // The header is the first part. The plan is stored by then, so the rest is not received.
    if (answer.case !== "part" || answer.value.part.case !== "header") break;
    const { id, counts } = answer.value.part.value;
    console.log(
      `plan: ${counts?.creates} to create, ${counts?.updates} to update, ${counts?.deletes} to delete, ` +
        `${counts?.attaches} to attach, ${counts?.detaches} to detach`,
    );
    return id;
  }
  throw new Error("the planner sent no plan");
}

/** Prints the events of an operation to its end, and returns the operation's id. */
async function follow(events: AsyncIterable<OperationEvent>): Promise<string> {
  let operationId = "";
  let state = OperationState.UNSPECIFIED;
  for await (const event of events) {
    operationId = event.operationId;
    console.log(`event ${event.seq}: ${event.event.case ?? "unknown"}`);
    if (event.event.case === "finished") state = event.event.value.state;
  }
  console.log(`operation: ${OperationState[state].toLowerCase()}`);
  if (state !== OperationState.SUCCEEDED) throw new Error(`operation ${operationId} did not succeed`);
  return operationId;
}

/** Prints what the stack owns, page by page. */
async function showStack(): Promise<void> {
  let pageToken = "";
  do {
    const page = await stacks.listResources({ stack, pageToken });
    for (const { key } of page.resources) console.log(`resource: ${key?.kind} ${key?.name}`);
    pageToken = page.nextPageToken;
  } while (pageToken);
}

/** Prints the changes of the stack until it is gone. */
async function followStack(changes: AsyncIterator<WatchStackResponse>): Promise<void> {
  for (let next = await changes.next(); !next.done; next = await changes.next()) {
    const { change } = next.value;
    if (change.case === "gone") console.log("change: gone");
    if (change.case === "operationEnded") console.log("change: operation ended");
  }
}

async function run(files: string[]): Promise<void> {
  const planId = await createPlan(files);

  const operationId = await follow(applier.applyPlan({ planId }));

  // Any client can watch the operation by its id, also while it runs and after the stream above broke.
  await follow(applier.watchOperation({ operationId }));

  await showStack();

  // Watch before the change: the stream then has every change of the stack.
  const changes = stacks.watchStack({ stack })[Symbol.asyncIterator]();
  await changes.next();

  await follow(applier.uninstallStack({ stack, afterUninstall: AfterUninstall.DELETE }));
  await followStack(changes);
}

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("usage: node dist/client.js FILE...");
  process.exit(2);
}
try {
  await run(files);
} catch (error) {
  console.error(`Error: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
