"""Similar random packages, for laws about applying one after the other."""

from typing import Any

from hypothesis import strategies as st

from tests.apply.packages import a_rule, an_endpoint, an_object, text

descriptions = st.sampled_from(["", "one", "two"])


@st.composite
def packages(draw: st.DrawFn) -> str:
    """Few objects under few keys, so that two packages are similar."""
    labels = draw(st.sets(st.sampled_from(["red", "green", "blue"])))
    objects: list[dict[str, Any]] = [
        an_object("Label", label, draw(st.sampled_from([label, f"{label} too"]))) for label in sorted(labels)
    ]
    some_labels = st.sets(st.sampled_from(sorted(labels))) if labels else st.just(set[str]())
    more: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "Bucket": st.fixed_dictionaries({"schemaType": st.sampled_from(["implicit", "explicit"])}),
        "Dashboard": st.just({}),
        "Task": st.fixed_dictionaries({"every": st.sampled_from(["1h", "2h"]), "query": st.just("buckets()")}),
    }
    for kind, specs in more.items():
        for name in sorted(draw(st.sets(st.sampled_from(["one", "two"])))):
            # Dashboards and tasks share their display names, buckets cannot.
            shown = name if kind == "Bucket" else "same"
            spec = draw(specs) | {"description": draw(descriptions)}
            objects.append(an_object(kind, name, shown, sorted(draw(some_labels)), **spec))
    endpoints = draw(st.dictionaries(st.sampled_from(["one", "two"]), st.sampled_from(["PagerDuty", "Slack"])))
    for name, kind in sorted(endpoints.items()):
        objects.append(an_endpoint(kind, name, name, sorted(draw(some_labels)), description=draw(descriptions)))
    for name in sorted(draw(st.sets(st.sampled_from(["one", "two"])))) if endpoints else []:
        endpoint = draw(st.sampled_from(sorted(endpoints)))
        objects.append(a_rule(name, endpoint, "same", sorted(draw(some_labels)), description=draw(descriptions)))
    # A package without objects breaks a rule.
    return text(*(objects or [an_object("Label", "red", "red")]))
