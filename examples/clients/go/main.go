// Command fleet plans a package, applies the plan, watches the apply, shows the resources of the stack, and deletes the stack under a watch.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	applierv1 "example.com/fleet/gen/pkger/applier/v1"
	modelv1 "example.com/fleet/gen/pkger/model/v1"
	parserv1 "example.com/fleet/gen/pkger/parser/v1"
	plannerv1 "example.com/fleet/gen/pkger/planner/v1"
	stackv1 "example.com/fleet/gen/pkger/stack/v1"
)

var stack = &modelv1.StackRef{Name: "fleet"}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: fleet FILE...")
	}
	// Each call with this context sends the token.
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+os.Getenv("PKGER_TOKEN"))
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal("Error: ", err)
	}
}

func run(ctx context.Context, files []string) error {
	planner := plannerv1.NewPlannerServiceClient(connect("PKGER_PLANNER_ADDRESS", "127.0.0.1:50052"))
	applier := applierv1.NewApplierServiceClient(connect("PKGER_APPLIER_ADDRESS", "127.0.0.1:50053"))
	stacks := stackv1.NewStackServiceClient(connect("PKGER_STACK_ADDRESS", "127.0.0.1:50054"))

	planID, err := createPlan(ctx, planner, files)
	if err != nil {
		return err
	}

	applying, err := applier.ApplyPlan(ctx, &applierv1.ApplyPlanRequest{PlanId: planID})
	if err != nil {
		return err
	}
	operationID, err := follow(applying)
	if err != nil {
		return err
	}

	// Any client can watch the operation by its id, also while it runs and after the stream above broke.
	watching, err := applier.WatchOperation(ctx, &applierv1.WatchOperationRequest{OperationId: operationID})
	if err != nil {
		return err
	}
	if _, err := follow(watching); err != nil {
		return err
	}

	if err := showStack(ctx, stacks); err != nil {
		return err
	}

	// Watch before the change: the stream then has every change of the stack.
	changes, err := stacks.WatchStack(ctx, &stackv1.WatchStackRequest{Stack: stack})
	if err != nil {
		return err
	}
	if _, err := changes.Recv(); err != nil {
		return err
	}

	uninstalling, err := applier.UninstallStack(ctx, &applierv1.UninstallStackRequest{
		Stack:          stack,
		AfterUninstall: modelv1.AfterUninstall_AFTER_UNINSTALL_DELETE,
	})
	if err != nil {
		return err
	}
	if _, err := follow(uninstalling); err != nil {
		return err
	}
	return followStack(changes)
}

// connect makes a channel to the address in the environment variable, or to the default one.
func connect(variable, address string) *grpc.ClientConn {
	plaintext := grpc.WithTransportCredentials(insecure.NewCredentials())
	channel, err := grpc.NewClient(cmp.Or(os.Getenv(variable), address), plaintext)
	if err != nil {
		log.Fatal("Error: ", err)
	}
	return channel
}

// createPlan stores a plan for the package in the files, prints how many steps of each kind it has, and returns its id.
func createPlan(ctx context.Context, planner plannerv1.PlannerServiceClient, files []string) (string, error) {
	pack := &plannerv1.PackageSources{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		source := &parserv1.Source{Name: file, Content: &parserv1.Source_Text{Text: string(text)}}
		pack.Sources = append(pack.Sources, source)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts, err := planner.CreatePlan(ctx, &plannerv1.CreatePlanRequest{
		Place:   &plannerv1.CreatePlanRequest_Stack{Stack: stack},
		Desired: &plannerv1.CreatePlanRequest_Package{Package: pack},
	})
	if err != nil {
		return "", err
	}
	// The header is the first part. The plan is stored by then, so the rest is not received.
	answer, err := parts.Recv()
	if err != nil {
		return "", err
	}
	if violations := answer.GetViolations(); violations != nil {
		return "", fmt.Errorf("the package is invalid: %v", violations.GetViolations())
	}
	plan := answer.GetPart().GetHeader()
	counts := plan.GetCounts()
	fmt.Printf("plan: %d to create, %d to update, %d to delete, %d to attach, %d to detach\n",
		counts.GetCreates(), counts.GetUpdates(), counts.GetDeletes(), counts.GetAttaches(), counts.GetDetaches())
	return plan.GetId(), nil
}

// follow prints the events of an operation to its end, and returns the operation's id.
func follow(events grpc.ServerStreamingClient[modelv1.OperationEvent]) (string, error) {
	var operationID string
	state := modelv1.OperationState_OPERATION_STATE_UNSPECIFIED
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return operationID, err
		}
		operationID = event.GetOperationId()
		fmt.Printf("event %d: %s\n", event.GetSeq(), nameOf(event))
		if finished := event.GetFinished(); finished != nil {
			state = finished.GetState()
		}
	}
	fmt.Printf("operation: %s\n", strings.ToLower(strings.TrimPrefix(state.String(), "OPERATION_STATE_")))
	if state != modelv1.OperationState_OPERATION_STATE_SUCCEEDED {
		return operationID, fmt.Errorf("operation %s did not succeed", operationID)
	}
	return operationID, nil
}

// followStack prints the changes of the stack until it is gone.
func followStack(changes stackv1.StackService_WatchStackClient) error {
	for {
		change, err := changes.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if gone := change.GetGone(); gone != nil {
			fmt.Println("change: gone")
		}
		if operation := change.GetOperationEnded(); operation != nil {
			fmt.Println("change: operation ended")
		}
	}
}

// nameOf is the name of the field that is set; a newer server may send events that this client does not know.
func nameOf(event *modelv1.OperationEvent) string {
	message := event.ProtoReflect()
	if field := message.WhichOneof(message.Descriptor().Oneofs().ByName("event")); field != nil {
		return string(field.Name())
	}
	return "unknown"
}

// showStack prints what the stack owns, page by page.
func showStack(ctx context.Context, stacks stackv1.StackServiceClient) error {
	request := &stackv1.ListResourcesRequest{Stack: stack}
	for {
		page, err := stacks.ListResources(ctx, request)
		if err != nil {
			return err
		}
		for _, entry := range page.GetResources() {
			fmt.Printf("resource: %s %s\n", entry.GetKey().GetKind(), entry.GetKey().GetName())
		}
		if page.GetNextPageToken() == "" {
			return nil
		}
		request.PageToken = page.GetNextPageToken()
	}
}
