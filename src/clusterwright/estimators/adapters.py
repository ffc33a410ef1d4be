"""What of a model is trained, and what is only read: all of it, or adapters beside frozen weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators.job import layers_a_stage, parameters_a_rank
from clusterwright.estimators.keeping import shipped
from clusterwright.laws import memory
from clusterwright.model import Attention, Experts, FeedForward, LatentAttention, StateSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.grid import Layouts
    from clusterwright.estimators.job import Job

    Floats = NDArray[Any]


def adapter_parameters(job: Job) -> float:
    """Parameters of the adapters of a whole model [1]."""
    return float(memory.low_rank_parameters(job.lora_rank, _widths(job)))


def frozen_bytes(job: Job, weight: float) -> float:
    """Size of a layer's weight that is not trained, of ``weight`` bytes where it is not quantised [B]."""
    if job.method == "full" or not (job.method == "qlora" or job.saving.quantised):
        return weight
    form = shipped().quantised[job.saving.quantised or "nf4"]
    return float(memory.quantised_bytes(form.bits, form.group, form.scale))


def trained_a_rank(job: Job, lay: Layouts) -> tuple[Floats, Floats]:
    """Parameters of a rank that have gradients, before data-parallel sharding: all but experts, and experts [1]."""
    dense, experts, ends = parameters_a_rank(job, lay)
    if job.method == "full":
        return dense + ends, experts
    return _adapters_a_rank(job, lay), 0.0 * experts


def weight_bytes_a_rank(job: Job, lay: Layouts, weight: float) -> tuple[Floats, Floats]:
    """Bytes of a rank's weights, trained or frozen, before data-parallel sharding: all but experts, and experts."""
    dense, experts, ends = parameters_a_rank(job, lay)
    frozen = frozen_bytes(job, weight)
    plain = frozen * dense + weight * ends
    if job.method != "full":
        plain = plain + weight * _adapters_a_rank(job, lay)
    return plain, frozen * experts


def _adapters_a_rank(job: Job, lay: Layouts) -> Floats:
    return np.asarray(adapter_parameters(job) * layers_a_stage(job, lay) / job.model.layers)


def _widths(job: Job) -> float:
    """Input and output widths of all products that adapters may stand beside, of all layers."""
    hidden, total = job.model.hidden, 0.0
    for block in job.model.blocks:
        mixer, feed = block.mixer, block.feed
        if isinstance(mixer, Attention):
            query, key = mixer.heads * mixer.head_size, mixer.kv_heads * mixer.head_size
            total += block.count * (4 * hidden + 2 * query + 2 * key)
        elif isinstance(mixer, LatentAttention):
            total += block.count * (3 * hidden + mixer.heads * (mixer.head_size + 2 * mixer.value_size))
        elif isinstance(mixer, StateSpace):
            total += block.count * (2 * hidden + 4 * mixer.heads * mixer.head_size)
        if isinstance(feed, FeedForward):
            total += block.count * (2 + feed.gated) * (hidden + feed.ffn)
        elif isinstance(feed, Experts):
            total += block.count * (2 + feed.gated) * (hidden * bool(feed.shared_ffn) + feed.shared_ffn)
    return total
