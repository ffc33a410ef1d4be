"""Memory at its peak: the limits it must meet, and published figures."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.estimators.grid import Layouts
from clusterwright.estimators.job import Job
from clusterwright.estimators.keeping import Saving, shipped
from clusterwright.estimators.kept import MODULES, kept
from clusterwright.estimators.residency import device_bytes, hold, reserved_bytes
from clusterwright.estimators.said import from_column, measured_memory_gib, saving_of, to_column
from clusterwright.hardware import Accelerator, FabricKind, Node
from clusterwright.layout import Layout
from clusterwright.measurement import TrainingRun
from clusterwright.model import Attention, Block, Experts, FeedForward, Model
from clusterwright.workload import Training

GIB = 2.0**30
H100 = Accelerator(
    name="h100-sxm", vendor="nvidia", architecture="hopper", memory_bytes=80e9, memory_bytes_per_s=3.35e12,
    peak_flop_per_s={"bf16": 989e12, "fp16": 989e12, "fp8": 1979e12}, multiprocessors=132,
    scale_up_bytes_per_s=450e9, scale_up_peer_bytes_per_s=450e9, power_w=700,
)  # fmt: skip
DGX = Node(
    name="dgx-h100", provider="nvidia", accelerator="h100-sxm", accelerators=8, scale_up_domain=8, nics=8,
    nic_bits_per_s=400e9, fabric=FabricKind.INFINIBAND, power_w=10200,
)  # fmt: skip
STACKS = (
    "megatron",
    "megatron-bridge",
    "torchtitan",
    "fsdp",
    "deepspeed",
    "nanotron",
    "any",
    "torchtune",
    "hf trainer",
)
DEGREE = st.sampled_from([1, 2, 4, 8])


def llama(layers: int, hidden: int, ffn: int, heads: int, kv_heads: int) -> Model:
    mixer = Attention(heads=heads, kv_heads=kv_heads, head_size=128)
    block = Block(count=layers, mixer=mixer, feed=FeedForward(ffn=ffn))
    return Model(name=f"llama-{layers}", hidden=hidden, vocab=128256, blocks=(block,))


EIGHT = llama(32, 4096, 14336, 32, 8)
SEVENTY = llama(80, 8192, 28672, 64, 8)
GROUPED = Attention(heads=32, kv_heads=8, head_size=128)
MIXTURE = Model(
    name="mixture",
    hidden=4096,
    vocab=32000,
    blocks=(
        Block(count=2, mixer=GROUPED, feed=FeedForward(ffn=14336)),
        Block(count=30, mixer=GROUPED, feed=Experts(experts=8, top_k=2, ffn=14336)),
    ),
)


def work(framework: str = "megatron", model: Model = EIGHT, **fields: object) -> Job:
    job = Job(model, H100, DGX, sequence_length=4096, framework=framework)
    return replace(job, **fields)  # type: ignore[arg-type]


def total(job: Job, **layout: object) -> float:
    found = hold(job, Layouts.of(Layout.model_validate({"global_batch": 64, **layout})))
    return float(sum(part[0] for part in found.values()))


@given(st.sampled_from(STACKS), st.sampled_from([EIGHT, MIXTURE]), DEGREE, DEGREE, st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_recompute_never_needs_more_memory(framework: str, model: Model, tp: int, pp: int, micro: int) -> None:
    none, selective, full = (
        total(work(framework, model), tp=tp, pp=pp, micro_batch=micro, recompute=kind)
        for kind in ("none", "selective", "full")
    )
    assert full <= selective * (1 + 1e-9)
    assert selective <= none * (1 + 1e-9)


@given(st.sampled_from(STACKS), st.sampled_from([EIGHT, MIXTURE]), DEGREE, st.sampled_from(["none", "distopt"]))
@settings(max_examples=40, deadline=None)
def test_memory_falls_with_pipeline_stages(framework: str, model: Model, tp: int, sharding: str) -> None:
    found = [total(work(framework, model), tp=tp, pp=pp, dp=1, sharding=sharding) for pp in (1, 2, 4, 8)]
    assert found == sorted(found, reverse=True)


@given(st.sampled_from(STACKS), st.sampled_from([EIGHT, MIXTURE]), DEGREE, st.sampled_from(["none", "full"]))
@settings(max_examples=40, deadline=None)
def test_memory_falls_with_tensor_parallelism(framework: str, model: Model, pp: int, recompute: str) -> None:
    found = [total(work(framework, model), tp=tp, pp=pp, recompute=recompute) for tp in (1, 2, 4, 8)]
    assert found == sorted(found, reverse=True)


@given(st.sampled_from(STACKS), DEGREE, st.sampled_from(["none", "full"]))
@settings(max_examples=40, deadline=None)
def test_memory_falls_with_sharding(framework: str, tp: int, recompute: str) -> None:
    found = [
        total(work(framework), tp=tp, dp=8, sharding=sharding, recompute=recompute)
        for sharding in ("none", "distopt", "zero2", "fsdp")
    ]
    assert found == sorted(found, reverse=True)


@given(st.sampled_from(STACKS), st.sampled_from([2, 4, 8, 16]), st.sampled_from(["distopt", "zero2", "fsdp"]))
@settings(max_examples=40, deadline=None)
def test_memory_falls_with_the_ranks_that_share(framework: str, dp: int, sharding: str) -> None:
    job = work(framework)
    more = total(job, dp=2 * dp, sharding=sharding, global_batch=64)
    assert more <= total(job, dp=dp, sharding=sharding, global_batch=64)


@given(st.sampled_from(STACKS), st.sampled_from([1, 2, 4]), st.sampled_from(["none", "selective", "full"]))
@settings(max_examples=40, deadline=None)
def test_a_larger_micro_batch_never_needs_less(framework: str, micro: int, recompute: str) -> None:
    one = total(work(framework), micro_batch=micro, recompute=recompute)
    assert one <= total(work(framework), micro_batch=2 * micro, recompute=recompute)


@given(
    st.sampled_from(STACKS),
    st.sampled_from(["none", "selective", "full"]),
    st.sampled_from(["none", "distopt", "fsdp"]),
    st.floats(0.0, 1.0),
)
@settings(max_examples=60, deadline=None)
def test_offload_never_needs_more_memory(framework: str, recompute: str, sharding: str, share: float) -> None:
    layout = {"dp": 8, "recompute": recompute, "sharding": sharding}
    plain = total(work(framework), **layout)
    for saving in (
        Saving(offload_optimizer=share),
        Saving(offload_activations=True),
        Saving(offload_parameters=True),
        Saving(in_backward=True),
        Saving(optimizer="adamw-8bit"),
        Saving(loss="chunked"),
    ):
        assert total(work(framework, saving=saving), **layout) <= plain * (1 + 1e-9)


@given(st.sampled_from(STACKS), st.sampled_from(["none", "selective", "full"]), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_activations_of_more_layers_on_the_host_never_need_more_memory(
    framework: str, recompute: str, one: float, other: float
) -> None:
    def needed(share: float) -> float:
        saving = Saving(offload_activations=True, offload_share=share)
        return total(work(framework, saving=saving), recompute=recompute)

    few, many = sorted((one, other))
    assert needed(1.0) <= needed(many) * (1 + 1e-9) <= needed(few) * (1 + 1e-9) ** 2
    assert needed(few) <= total(work(framework), recompute=recompute) * (1 + 1e-9)
    assert needed(0.0) == pytest.approx(total(work(framework), recompute=recompute))


@given(st.lists(st.sampled_from(MODULES), unique=True, max_size=4))
@settings(max_examples=40, deadline=None)
def test_dropping_more_modules_never_needs_more_memory(modules: list[str]) -> None:
    job = work("megatron-bridge", MIXTURE)
    kept = total(replace(job, saving=Saving(recomputed=())), recompute="selective")
    assert total(replace(job, saving=Saving(recomputed=tuple(modules))), recompute="selective") <= kept * (1 + 1e-9)


def test_many_layouts_are_held_as_one_by_one() -> None:
    layouts = [
        Layout(tp=tp, pp=pp, vpp=vpp, dp=8, sharding=sharding, recompute=recompute, global_batch=64)
        for tp, pp, vpp in ((1, 1, 1), (2, 4, 2), (8, 2, 1))
        for sharding in ("none", "zero2", "fsdp", "hsdp")
        for recompute in ("none", "selective", "full")
    ]
    together = hold(work(), Layouts.of(*layouts))
    alone = [hold(work(), Layouts.of(layout)) for layout in layouts]
    assert all(np.allclose(part, [float(one[name][0]) for one in alone]) for name, part in together.items())


def test_the_peak_is_of_the_fullest_stage() -> None:
    layout = Layouts.of(Layout(pp=4, dp=1, global_batch=32))
    sizes = {
        rank: float(sum(part[0] for part in hold(work(saving=Saving(rank=rank)), layout).values()))
        for rank in ("fullest", "first", "last")
    }
    assert max(sizes["first"], sizes["last"]) == sizes["fullest"]
    assert sizes["last"] < sizes["first"]


def test_what_the_device_shows_is_more_than_what_is_allocated() -> None:
    layout = Layouts.of(Layout(tp=2, dp=4, sharding="distopt", global_batch=32))
    parts = hold(work(), layout)
    allocated = float(sum(part[0] for part in parts.values()))
    assert allocated < float(reserved_bytes(work(), parts)[0]) < float(device_bytes(work(), layout, parts)[0])


@given(st.floats(100.0, 1e6))
def test_sequences_that_differ_in_length_reserve_more_but_never_more_than_there_is(mean_length: float) -> None:
    job = work("hf trainer", method="lora", saving=Saving(mean_length=mean_length))
    parts = hold(job, Layouts.of(Layout(global_batch=8, recompute="full")))
    reserved = float(reserved_bytes(job, parts)[0])
    assert float(reserved_bytes(replace(job, saving=Saving()), parts)[0]) < reserved <= job.accelerator.memory_bytes


@pytest.mark.parametrize(
    ("model", "layout", "sequence", "published_gib"),
    [
        # SimuMax, docs/b200/b200_release_v1.2_summary.json: torch's max_allocated of Megatron-LM on 8 B200
        (llama(12, 8192, 28672, 64, 8), {"pp": 2, "dp": 4, "global_batch": 128}, 4096, 66.55),
        (llama(12, 8192, 28672, 64, 8), {"cp": 8, "dp": 1, "global_batch": 4}, 131072, 147.99),
        (llama(12, 8192, 28672, 64, 8), {"tp": 8, "dp": 1, "global_batch": 32}, 4096, 28.29),
        (llama(4, 16384, 53248, 128, 16), {"tp": 2, "dp": 4, "global_batch": 128}, 4096, 81.59),
    ],
)
def test_megatron_meets_what_was_allocated(
    model: Model, layout: dict[str, object], sequence: int, published_gib: float
) -> None:
    job = replace(work(model=model, saving=Saving(loss="fused")), sequence_length=sequence)
    assert abs(total(job, sharding="distopt", **layout) / GIB / published_gib - 1) < 0.02


@pytest.mark.parametrize(
    ("method", "recompute", "saving", "published_gib"),
    [
        # torchtune, README.md, "Memory and training speed": Llama 3.1 8B on one RTX 4090 of 24 GiB and A6000 of 48 GiB
        ("lora", "full", Saving(compiled=True), 16.2),
        ("qlora", "full", Saving(compiled=True, quantised="nf4"), 7.4),
        ("lora", "none", Saving(compiled=True), 30.3),
        ("full", "full", Saving(compiled=True, optimizer="paged-adamw-8bit", in_backward=True), 18.9),
    ],
)
def test_eight_billion_parameters_fit_where_torchtune_says(
    method: str, recompute: str, saving: Saving, published_gib: float
) -> None:
    job = replace(work("torchtune", method=method, lora_rank=8, saving=saving), sequence_length=2048)
    found = total(job, micro_batch=2, global_batch=2, recompute=recompute) / GIB
    assert abs(found / published_gib - 1) < 0.12


def test_adapters_keep_no_gradients_of_the_frozen_weights() -> None:
    layout = Layouts.of(Layout(global_batch=1))
    full, lora, qlora = (hold(work("torchtune", method=m), layout) for m in ("full", "lora", "qlora"))
    assert float(lora["optimizer"][0]) < 0.05 * float(full["optimizer"][0])
    assert float(qlora["weights"][0]) < 0.5 * float(lora["weights"][0])


def test_a_pure_bf16_fine_tuning_of_seven_billion_takes_a_whole_a100() -> None:
    # ms-swift, docs of its benchmark: Qwen-7B, all parameters, one A100 of 80 GB: 73.5 GiB
    mixer = Attention(heads=32, kv_heads=32, head_size=128, qkv_bias=True)
    qwen = Model(
        name="qwen-7b",
        hidden=4096,
        vocab=151936,
        blocks=(Block(count=32, mixer=mixer, feed=FeedForward(ffn=11008)),),
    )
    found = total(work("ms-swift (HF Trainer)", qwen, sequence_length=512), recompute="full", global_batch=16)
    assert abs(found / GIB / 73.5 - 1) < 0.05


def test_every_stack_names_where_its_facts_come_from() -> None:
    table = shipped()
    assert [] == [keep.name for keep in table.keeping if keep.source not in table.sources]


@pytest.mark.parametrize(
    "framework", ["Megatron-LM", "Colossal-AI 0.3", "a framework of 2031", "PaxML", "LLaMA-Factory"]
)
def test_every_framework_has_a_stack(framework: str) -> None:
    assert total(work(framework)) > 0


def run(notes: str = "", **texts: str) -> TrainingRun:
    columns = {"framework": "torchtune", "model": "m", "precision": "bf16", "notes": notes}
    return TrainingRun({**columns, **texts}, {"n_gpus": 1.0, "peak_mem_gb": 10.0})


@pytest.mark.parametrize(
    ("notes", "field", "expected"),
    [
        ("8-bit AdamW", "optimizer", "adamw-8bit"),
        ("bitsandbytes PagedAdamW8bit", "optimizer", "paged-adamw-8bit"),
        ("optimizer CPU offload 25pct", "offload_optimizer", 0.25),
        ("CPU offload of the optimizer", "offload_optimizer", 1.0),
        ("activation offloading", "offload_activations", True),
        ("recompute_modules=moe_act+layernorm; tiny", "recomputed", ("moe_act", "layernorm")),
        ("recompute_modules=none", "recomputed", ()),
        ("chunked CE", "loss", "chunked"),
        ("CE fusion", "loss", "fused"),
        ("flash_attn=off", "fused_attention", False),
        ("HSDP; torch.compile", "compiled", True),
        ("no compile, Feb 2024", "compiled", False),
        ("compile off", "compiled", False),
        ("eager FSDP2", "compiled", None),
        ("mem = torch max allocated on rank 0", "rank", "first"),
        ("sample lengths VARY: mean 3234 truncated", "mean_length", 3234.0),
        ("nothing of the kind", "optimizer", ""),
    ],
)
def test_the_words_of_a_run_are_read(notes: str, field: str, expected: object) -> None:
    assert expected == getattr(saving_of(run(notes)), field)


def test_what_is_said_of_one_device_is_not_taken_for_eight() -> None:
    words = "single-device full finetune recipes use optimizer-in-backward / 8-bit (paged) AdamW"
    assert "paged-adamw-8bit" == saving_of(run(words)).optimizer
    many = TrainingRun(run(words).texts, {"n_gpus": 8.0})
    assert Saving() == saving_of(many)


def test_gigabytes_are_told_from_gibibytes() -> None:
    assert 10.0 == measured_memory_gib(run())
    assert np.isclose(10e9 / GIB, measured_memory_gib(run(framework="Megatron-Bridge")) or 0.0)
    assert np.isclose(10e9 / GIB, measured_memory_gib(run("max allocated 9.31 GiB (10.00 GB)")) or 0.0)


def training(**asked: object) -> Training:
    return Training.model_validate({"tokens": 1e9, "sequence_length": 4096, "global_batch": 64, **asked})


@pytest.mark.parametrize(
    "asked",
    [
        {"optimizer": "precision-aware"},
        {"optimizer": "adamw-8bit"},
        {"offload": ("optimizer",)},
        {"offload": ("activations",)},
    ],
)
def test_what_a_workload_asks_for_saves_memory(asked: dict[str, object]) -> None:
    saving = Saving.asked(training(**asked))
    assert total(work(saving=saving), recompute="selective") < total(work(), recompute="selective")


def test_a_workload_that_asks_for_nothing_changes_nothing() -> None:
    assert Saving() == Saving.asked(training())


def test_the_modules_of_a_workload_are_dropped() -> None:
    saving = Saving.asked(training(recompute_modules=("mlp", "moe")))
    assert total(work(model=MIXTURE, saving=saving), recompute="selective") < total(
        work(model=MIXTURE), recompute="selective"
    )


@given(
    st.sampled_from(["", *shipped().optimizer]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, 0.0, 0.25, 1.0]),
    st.sampled_from([None, (), ("mlp", "moe_act")]),
    st.sampled_from(["fullest", "first", "last"]),
)
def test_what_a_run_saves_goes_through_a_column(
    optimizer: str,
    flag: bool | None,  # noqa: FBT001 - drawn by hypothesis
    share: float | None,
    modules: tuple[str, ...] | None,
    rank: Literal["fullest", "first", "last"],
) -> None:
    saving = Saving(
        optimizer=optimizer,
        in_backward=flag,
        compiled=flag,
        offload_optimizer=share,
        recomputed=modules,
        offload_activations=True,
        offload_share=1.0 if share is None else share,
        rank=rank,
        mean_length=3234.0,
    )
    assert saving == from_column(to_column(saving))


@given(st.text(max_size=40))
def test_a_column_of_anything_is_read(text: str) -> None:
    assert isinstance(from_column(text), Saving)


def test_the_column_goes_before_the_notes() -> None:
    told = run("8-bit AdamW", saving="rank=last")
    assert Saving(rank="last") == saving_of(told)


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
@pytest.mark.parametrize("together", [False, True])
def test_a_layer_of_gpt_keeps_what_korthikanti_says(tensor: int, together: bool) -> None:  # noqa: FBT001 - a parameter
    # Korthikanti et al. 2022, equations 2 and 4: s b h (10 + 24 / t + 5 a s / (h t)), and 10 / t where sequences split
    heads, hidden, sequence = 96, 12288, 2048
    mixer = Attention(heads=heads, kv_heads=heads, head_size=128)
    block = Block(count=96, mixer=mixer, feed=FeedForward(ffn=4 * hidden, gated=False))
    gpt = Model(name="gpt-3", hidden=hidden, vocab=51200, blocks=(block,))
    saving = Saving(sequence_parallel=together)
    job = work("Megatron-LM", gpt, year=2022.0, sequence_length=sequence, saving=saving)
    stack = shipped().of(job.framework, job.year, job.saving)
    found = kept(job, stack, np.array([float(tensor)]), np.array([1.0]))
    wide = 10 / tensor if together else 10
    layer = hidden * (wide + 24 / tensor + 5 * heads * sequence / (hidden * tensor))
    assert np.isclose(layer, float(found.whole[0]))
    assert np.isclose(hidden * (wide + 24 / tensor), float(found.left[0]))


def test_sixty_five_billion_fit_on_48_gib_as_the_qlora_paper_has_it() -> None:
    # Dettmers et al. 2023, abstract and section 3: 65B on one accelerator of 48 GB, with paged optimizers
    mixer = Attention(heads=64, kv_heads=64, head_size=128)
    block = Block(count=80, mixer=mixer, feed=FeedForward(ffn=22016))
    llama_65b = Model(name="llama-65b", hidden=8192, vocab=32000, blocks=(block,))
    saving = Saving(optimizer="paged-adamw-8bit")
    job = work("transformers", llama_65b, method="qlora", lora_rank=64, sequence_length=512, saving=saving)
    assert 0.75 * 48 < total(job, recompute="full", global_batch=16) / GIB < 0.95 * 48
