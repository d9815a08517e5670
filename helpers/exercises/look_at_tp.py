"""Where to look first in a wrong answer of notebook 13: clues, exercise by exercise."""

from __future__ import annotations

from helpers.exercises.tp_parts import LookFor

look_at_column = LookFor(
    (
        (
            "cannot be multiplied",
            "`dense.weight` has one row for each output: column-parallel cuts the rows, dimension 0, "
            "though the product x W^T then has fewer columns.",
        ),
        (
            "gradient of the input: .*1/",
            "This is the mean. What a rank knows of x's gradient is one summand: add up, and divide by "
            "nothing.",
        ),
        (
            "gradient of the input: .*elements differ|gradient of the input: it differs",
            "Each rank knows only what its own columns say about x. Does x go through "
            "`CopyToRanks.apply(x)` before the product, and does its backward add up over all ranks and "
            "return the sum?",
        ),
        (
            "gradient of the input: there is none",
            "The gradient must reach x: CopyToRanks.backward returns one gradient for its one input.",
        ),
        (
            "^weight: its shape",
            "`dense.weight` has one row for each output: rank r keeps block r of the rows "
            "and no other.",
        ),
        (
            "^weight: .*differ",
            "Rank r keeps block r of the rows, in order: `dense.weight.chunk(world_size)[rank]`.",
        ),
        (
            "^bias: |expanded size|size of tensor a",
            "One bias for each output of this rank: cut the bias as you cut the rows of the weight.",
        ),
        (
            "the layer keeps",
            "A slice is a view, and keeps the whole dense weight in memory: `.clone()` it. Nor may the "
            "layer keep `dense` itself.",
        ),
        (
            "no parameter called",
            "Make `self.weight` (and `self.bias`, or None) a torch.nn.Parameter.",
        ),
        (
            "output: its shape",
            "The layer returns this rank's own columns of the output; nothing is gathered.",
        ),
        (
            "output: ",
            "CopyToRanks.forward hands x on as it is, because every rank has all of x; the sum belongs "
            "in its backward. Then x times this rank's rows, plus this rank's part of the bias.",
        ),
        (
            "NoneType.*(chunk|tensor_split|clone|subscriptable|detach)",
            "With `bias=False` the dense layer's bias is None: then `self.bias` is None too.",
        ),
        (
            "gradient of (weight|bias)",
            "The weight's gradient is this rank's own: it needs no communication.",
        ),
    )
)

look_at_row = LookFor(
    (
        (
            "cannot be multiplied",
            "`x` holds this rank's columns of the input already: do not cut it again. The weight's part has "
            "as many columns: `dense.weight.chunk(world_size, dim=1)[rank]`.",
        ),
        (
            "^weight: its shape",
            "One column of `dense.weight` for each input: rank r keeps block r of the columns.",
        ),
        (
            "^weight: .*differ",
            "Rank r keeps block r of the columns: `dense.weight.chunk(world_size, dim=1)[rank]`.",
        ),
        (
            "^bias: ",
            "Every rank keeps the whole bias: it belongs to the outputs, and those are not cut.",
        ),
        (
            "the layer keeps",
            "A slice is a view, and keeps the whole dense weight in memory: `.clone()` it. Nor may the "
            "layer keep `dense` itself.",
        ),
        (
            "no parameter called",
            "Make `self.weight` (and `self.bias`, or None) a torch.nn.Parameter.",
        ),
        (
            "output: ",
            "The output is the sum (not the mean) of all ranks' products, plus the bias once: added before "
            "the sum, it counts {n} times.",
        ),
        (
            "gradient of bias: .*1/",
            "A bias that is divided and then summed gets a divided gradient: add the whole bias after "
            "the sum.",
        ),
        (
            "gradient of bias: there is none",
            "Every rank adds the bias to the sum, so that every rank's copy gets the same gradient.",
        ),
        (
            "gradient of .* times what is right",
            "All ranks hold the same output, and one loss depends on it: its gradient arrives complete "
            "on every rank. SumOverRanks.backward hands it on as it is.",
        ),
        (
            "gradient of .* there is none",
            "The output's gradient must find its way back: SumOverRanks.backward returns it, and nothing on "
            "the way is detached.",
        ),
        (
            "NoneType.*(chunk|clone|detach)|(Tensor.*NoneType)",
            "With `bias=False` the dense layer's bias is None: then `self.bias` is None too.",
        ),
    )
)

_ONE_COPY = (
    "gradient of x: .*(differ)",
    "Each rank knows only its own part of x's gradient: let all that reads x read "
    "`CopyToRanks.apply(x)`, applied once.",
)
_ONE_SUM = (
    "gradient of .* times what is right",
    "This gradient is {n} times too large: it was summed where it was complete already. "
    "SumOverRanks.backward hands it on as it is.",
)

look_at_mlp = LookFor(
    (
        (
            "size|shape|split",
            "The parts may differ in size between ranks: only what has x's shape can be summed.",
        ),
        (
            "output: ",
            "down(silu(gate(x)) * up(x)), each with this rank's part; then one SumOverRanks. The product of "
            "gate and up comes before `down`, on each rank by itself.",
        ),
        _ONE_SUM,
        _ONE_COPY,
    )
)

look_at_attention = LookFor(
    (
        ("without is_causal", "A token may look at itself and those before it: is_causal=True."),
        (
            "output: ",
            "Check the shapes on the way: (batch, time, heads * head_size), then unflatten(-1, (-1, "
            "head_size)) and transpose(1, 2), attention with is_causal=True, then back: transpose(1, 2) "
            "and flatten(2).",
        ),
        _ONE_SUM,
        _ONE_COPY,
        (
            "gradient of (query|key|value|out)",
            "A weight's gradient is this rank's own: no call for it.",
        ),
        (
            "size|shape|invalid for input",
            "Ranks may have different numbers of heads: take them from the weights, by "
            "unflatten(-1, (-1, head_size)). After transpose, `flatten` and `reshape` work, `view` does not.",
        ),
    )
)

look_at_loss = LookFor(
    (
        (
            "autograd warns",
            "A tensor that autograd watches goes into a plain `dist.all_reduce`. The maximum comes from "
            "`logits.detach()`; sums that need a gradient go through `SumOverRanks.apply(...)`.",
        ),
        (
            "gradient of logits: .*nan or inf",
            "Backward goes through the maximum, and all_reduce has changed what it kept. It cancels out "
            "and needs no gradient: take the maximum of `logits.detach()`.",
        ),
        (
            "nan or inf",
            "exp of a large logit overflows: subtract m, the largest logit of all ranks, before exp.",
        ),
        ("it is a", "Return the loss itself, a tensor without dimensions: backward begins there."),
        ("loss: its shape", "The mean over all tokens: a tensor without dimensions."),
        ("loss: its dtype", "The loss has the dtype of the logits."),
        (
            "the sum over the",
            "Return the mean over the tokens, as cross_entropy does.",
        ),
        (
            "loss: (nan|inf|it differs)",
            "Take it apart for one token: m, the largest logit of all ranks; s, the sum over all ranks of "
            "exp(logit - m); t, the target's logit, from the one rank that has it. The loss is "
            "log(s) + m - t, and its mean over the tokens is returned. `first` is given: ranks may have "
            "different numbers of words.",
        ),
        (
            "gradient of logits: .* times what is right",
            "The loss is the same on every rank, so the gradient of a sum over ranks arrives complete. Sum "
            "by SumOverRanks.apply, whose backward hands it on.",
        ),
        (
            "gradient of logits",
            "The gradient is softmax minus one-hot, divided by the number of tokens. Do both sums go "
            "through SumOverRanks, and does the maximum come from `logits.detach()`?",
        ),
        ("have changed", "Work on a copy: `logits - m[:, None]`, not `logits -= ...`."),
        (
            "out of bounds|index",
            "On most ranks the target is another rank's word: `own = (target >= first) & (target < first + "
            "logits.shape[1])`, then clamp the index and put 0 where it is not own.",
        ),
    )
)

look_at_dtensor = LookFor(
    (
        (
            "only support nn.Linear",
            "Colwise and Rowwise are for Linear layers (and embeddings). The norm stays whole: it has no "
            "place in the plan.",
        ),
        (
            "Expect Union",
            "The plan wants objects, not classes: `ColwiseParallel()`, with its brackets.",
        ),
        ("returns NoneType", "Return the model that parallelize_module gives back."),
        (
            "has the shape",
            "In the plan, the layers that read the block's input are Colwise, those that give its output "
            "Rowwise; names are the paths of the modules, as `mlp.gate`. A name that no module has "
            "is only a warning.",
        ),
        (
            "^(RuntimeError|ValueError|AssertionError)",
            "Which layer gets which part? q, k, v, gate and up are Colwise, o and down Rowwise, with their "
            "default layouts.",
        ),
        (
            "gradient of|output",
            "Compare the plan with the picture: is each pair Colwise, then Rowwise?",
        ),
    )
)
