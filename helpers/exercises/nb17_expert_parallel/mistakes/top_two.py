# %% nobody is turned away
# Nobody is turned away here, although some experts have more than {capacity} tokens.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    return experts, gates / gates.sum(1, keepdim=True), 0


# %% token by token
# Places went out token by token, both choices of each. First come all first choices, then the second
# ones: a second choice never takes a place from a first one.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(-1, 2)
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% gates as they are
# The two gates of a token are divided by their sum, before anybody is turned away.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% divided after
# The gates were divided by their sum after some were turned away. They are divided before: what a token
# loses is not given to its other expert.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    gates = torch.where(kept, gates, 0.0)
    return experts, gates / gates.sum(1, keepdim=True).clamp(min=1e-9), (~kept).sum().item()


# %% counts from 0
# One token too many, or too few: an expert takes `capacity` tokens, and turns away the next.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) - 1 <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% capacity for each choice
# First and second choices were counted apart: an expert has `capacity` places in all.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    kept = []
    for c in range(2):
        pairs = torch.nn.functional.one_hot(experts[:, c], logits.shape[1])
        kept.append((pairs.cumsum(0) * pairs).sum(1) <= capacity)
    kept = torch.stack(kept, 1)
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% the likeliest tokens first
# Places went to the likeliest tokens; they go in the order of the tokens.
def top_two(logits, capacity):
    probabilities, experts = logits.softmax(1).topk(2)
    gates = probabilities / probabilities.sum(1, keepdim=True)
    used, kept = [0] * logits.shape[1], torch.zeros_like(gates, dtype=torch.bool)
    for c in range(2):
        for t in probabilities[:, c].argsort(descending=True).tolist():
            e = experts[t, c].item()
            kept[t, c] = used[e] < capacity
            used[e] += int(kept[t, c])
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% those turned away lose their expert
# A token that is turned away keeps its expert in `experts`; only its gate becomes 0.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return torch.where(kept, experts, -1), torch.where(kept, gates, 0.0), (~kept).sum().item()
