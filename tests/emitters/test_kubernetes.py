from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.emitters import emit
from clusterwright.hardware import FabricKind
from tests.emitters import cel, schemas
from tests.emitters.plans import SITE, make_plan, node
from tests.emitters.readers import CORE, all_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clusterwright.plan import Plan

TARGETS = ("volcano", "kueue", "jobset", "trainjob", "pytorchjob", "kuberay")
HOSTS = ",".join(f"gpu{i}" for i in range(8))
RACKS = {
    "volcano": {"hosts": HOSTS},
    "kueue": {"topology_labels": "example.com/rack"},
}
CASES = {
    "infiniband": (make_plan(), {}),
    "claims and sizes": (
        make_plan(site={**SITE, "data_claim": "datasets", "checkpoint_claim": "checkpoints"}),
        {"cpus_per_node": "96", "memory_gib_per_node": "1800", "gpu_product": "NVIDIA-H100-80GB-HBM3"},
    ),
    "tcp": (make_plan(hardware=node(FabricKind.TCP)), {}),
}
GPU = "nvidia.com/gpu"
HEAD = "ray-head"
"""The one pod without an accelerator: it starts the others."""
SHM = "/dev/shm"  # noqa: S108 - a mount point in the container


def documents_of(target: str, plan: Plan, overrides: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
    files = emit(plan, target, overrides).files
    return [d for name, text in files.items() if name.endswith(".yaml") for d in schemas.load_all(text)]


def pods_of(tree: object) -> Iterator[dict[str, Any]]:
    """Every pod specification anywhere in an object."""
    if isinstance(tree, dict):
        if "containers" in tree:
            yield tree
        for inner in tree.values():
            yield from pods_of(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from pods_of(inner)


@pytest.mark.reader("the schema and CEL rules of its CustomResourceDefinition")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_custom_resources_hold_before_their_own_schema(target: str, case: str) -> None:
    plan, overrides = CASES[case]
    found = [d for d in documents_of(target, plan, overrides) if d["apiVersion"] not in CORE]
    assert [] != found
    assert [] == [fault for document in found for fault in schemas.faults(document)]


def test_a_field_that_the_schema_does_not_know_is_refused() -> None:
    job = next(d for d in documents_of("volcano", make_plan()) if d["kind"] == "Job")
    job["spec"]["minAvailabel"] = 8
    assert [] != schemas.faults(job)


BROKEN = {
    "a hyper node without members' names": ("volcano", "HyperNode", ("spec", "members", 0, "selector"), {}),
    "a topology whose last level is no host": (
        "kueue", "Topology", ("spec", "levels"),
        [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "example.com/rack"}],
    ),
    "a flavor with a topology and no label": ("kueue", "ResourceFlavor", ("spec", "nodeLabels"), {}),
    "a quota that covers more than it counts": (
        "kueue", "ClusterQueue", ("spec", "resourceGroups", 0, "coveredResources"), ["nvidia.com/gpu", "cpu", "memory"],
    ),
    "a job set whose start is ordered twice": (
        "jobset", "JobSet", ("spec",),
        {"startupPolicy": {"startupPolicyOrder": "InOrder"},
         "replicatedJobs": [{"name": "b", "template": {"spec": {}}, "dependsOn": [{"name": "a", "status": "Ready"}]}]},
    ),
    "a train job whose name begins with a digit": ("trainjob", "TrainJob", ("metadata", "name"), "70b-64"),
    "a runtime of two frameworks": ("trainjob", "TrainingRuntime", ("spec", "mlPolicy", "mpi"), {}),
    "a Ray job managed by a stranger": ("kuberay", "RayJob", ("spec", "managedBy"), "example.com/operator"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_an_object_that_only_a_rule_of_its_schema_forbids_is_refused(case: str) -> None:
    target, kind, path, value = BROKEN[case]
    document = next(d for d in documents_of(target, make_plan(), RACKS.get(target, {})) if d["kind"] == kind)
    assert [] == schemas.faults(document)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    schema = schemas.schema_of(document)
    assert schema is not None
    assert 1 == len(cel.faults(schema, document))


def test_the_rules_of_the_schemas_have_something_to_judge_in_what_is_emitted() -> None:
    met = {}
    for target in TARGETS:
        for document in documents_of(target, make_plan(), RACKS.get(target, {})):
            if document["apiVersion"] not in CORE and (schema := schemas.schema_of(document)):
                met[document["kind"]] = cel.rules_met(schema, document)
    ruled = {"ClusterQueue", "HyperNode", "JobSet", "ResourceFlavor", "Topology", "TrainJob", "TrainingRuntime"}
    assert ruled == {kind for kind, rules in met.items() if rules}


def test_hyper_nodes_hold_before_their_schema_and_name_every_host_once() -> None:
    found = [d for d in documents_of("volcano", make_plan(), {"hosts": HOSTS}) if d["kind"] == "HyperNode"]
    assert [] == [fault for document in found for fault in schemas.faults(document)]
    members = [m for d in found for m in d["spec"]["members"] if m["type"] == "Node"]
    assert HOSTS.split(",") == [m["selector"]["exactMatch"]["name"] for m in members]


@pytest.mark.reader("kubernetes-validate (strict), bash, shellcheck")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_core_objects_and_scripts_hold_before_their_readers(target: str, case: str) -> None:
    plan, overrides = CASES[case]
    assert [] == all_faults(emit(plan, target, overrides).files)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_pod_asks_for_whole_devices_shares_memory_and_mounts_only_its_own_volumes(target: str, case: str) -> None:
    plan, overrides = CASES[case]
    pods = [p for d in documents_of(target, plan, overrides) for p in pods_of(d) if p["containers"][0]["name"] != HEAD]
    assert [] != pods
    for pod in pods:
        (container,) = pod["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert 8 == container["resources"]["limits"][GPU]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert set(mounts.values()) == set(volumes)
        assert {"medium": "Memory"} == volumes[mounts[SHM]]["emptyDir"]
        assert pod["terminationGracePeriodSeconds"] >= 988e9 / 40e9 + 9.3
        assert ("rdma/hca" in container["resources"]["limits"]) == (case != "tcp")
        assert (container["securityContext"] != {}) == (case != "tcp")
        assert ("nodeSelector" in pod) == ("gpu_product" in overrides)
        assert ("persistentVolumeClaim" in volumes["data"]) == ("data_claim" in plan.site)


def test_volcano_starts_all_pods_or_none_and_restarts_them_together() -> None:
    (job,) = (d for d in documents_of("volcano", make_plan()) if d["kind"] == "Job")
    spec = job["spec"]
    assert sum(task["replicas"] for task in spec["tasks"]) == spec["minAvailable"] == 8
    assert ("volcano", "training") == (spec["schedulerName"], spec["queue"])
    actions = {policy["event"]: policy["action"] for policy in spec["policies"]}
    assert {"PodEvicted": "RestartJob", "PodFailed": "RestartJob", "TaskCompleted": "CompleteJob"} == actions
    assert "networkTopology" not in spec


def test_volcano_binds_a_job_to_the_network_only_where_the_network_is_told() -> None:
    (job,) = (d for d in documents_of("volcano", make_plan(), {"hosts": HOSTS}) if d["kind"] == "Job")
    assert {"mode": "hard", "highestTierAllowed": 2} == job["spec"]["networkTopology"]
    assert "HyperNodes and networkTopology" in [u.what for u in emit(make_plan(), "volcano").unsupported]


@pytest.mark.parametrize("target", ["jobset", "kueue"])
def test_a_job_set_starts_every_node_once_and_restarts_as_one(target: str) -> None:
    (job_set,) = (d for d in documents_of(target, make_plan()) if d["kind"] == "JobSet")
    (replicated,) = job_set["spec"]["replicatedJobs"]
    child = replicated["template"]["spec"]
    assert (8, 8, "Indexed", 0) == tuple(
        child[k] for k in ("parallelism", "completions", "completionMode", "backoffLimit")
    )
    assert job_set["spec"]["failurePolicy"]["maxRestarts"] > 0
    address = f"{job_set['metadata']['name']}-{replicated['name']}-0-0.{job_set['metadata']['name']}"
    assert address in child["template"]["spec"]["containers"][0]["command"][-1]


def test_kueue_holds_quota_for_nodes_and_spares_and_the_job_waits_in_its_queue() -> None:
    found = documents_of("kueue", make_plan(spares=1))
    kinds = {d["kind"]: d for d in found}
    (group,) = kinds["ClusterQueue"]["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    assert group["coveredResources"] == [r["name"] for r in flavor["resources"]]
    assert {GPU: 72, "rdma/hca": 72} == {r["name"]: r["nominalQuota"] for r in flavor["resources"]}
    assert flavor["name"] == kinds["ResourceFlavor"]["metadata"]["name"]
    assert kinds["ResourceFlavor"]["spec"]["topologyName"] == kinds["Topology"]["metadata"]["name"]
    job = kinds["JobSet"]
    assert kinds["LocalQueue"]["metadata"]["name"] == job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    assert job["spec"]["suspend"]


def test_kueue_places_by_the_labels_that_the_site_gives() -> None:
    labels = "example.com/block,example.com/rack"
    found = {d["kind"]: d for d in documents_of("kueue", make_plan(), {"topology_labels": labels})}
    levels = [level["nodeLabel"] for level in found["Topology"]["spec"]["levels"]]
    assert [*labels.split(","), "kubernetes.io/hostname"] == levels
    template = found["JobSet"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert {"kueue.x-k8s.io/podset-required-topology": "example.com/block"} == template["metadata"]["annotations"]


def test_a_train_job_asks_for_all_nodes_of_its_runtime() -> None:
    found = {d["kind"]: d for d in documents_of("trainjob", make_plan())}
    trainer = found["TrainJob"]["spec"]["trainer"]
    assert 64 == trainer["numNodes"] * trainer["resourcesPerNode"]["limits"][GPU]
    assert found["TrainingRuntime"]["metadata"]["name"] == found["TrainJob"]["spec"]["runtimeRef"]["name"]


def test_a_pytorch_job_has_one_master_and_the_rest_are_workers() -> None:
    (job,) = (d for d in documents_of("pytorchjob", make_plan()) if d["kind"] == "PyTorchJob")
    replicas = {role: spec["replicas"] for role, spec in job["spec"]["pytorchReplicaSpecs"].items()}
    assert {"Master": 1, "Worker": 7} == replicas
    assert 8 == job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"]
    names = {c["name"] for pod in pods_of(job) for c in pod["containers"]}
    assert {"pytorch"} == names


def test_a_ray_job_starts_all_its_nodes_through_one_pod_group_and_begins_again_whole() -> None:
    (job,) = (d for d in documents_of("kuberay", make_plan()) if d["kind"] == "RayJob")
    assert "training" == job["metadata"]["labels"]["volcano.sh/queue-name"]
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [8, 8, 8] == [group[key] for key in ("replicas", "minReplicas", "maxReplicas")]
    assert "8" == group["rayStartParams"]["num-gpus"]
    assert job["spec"]["backoffLimit"] > 0
    (config,) = (d for d in documents_of("kuberay", make_plan()) if d["kind"] == "ConfigMap")
    assert job["spec"]["entrypoint"].removeprefix("python /opt/clusterwright/") in config["data"]
    assert "command" not in group["template"]["spec"]["containers"][0]
