# %% right: a loop over pairs
def top_two(logits, capacity):
    probabilities = torch.softmax(logits, dim=1)
    experts = logits.argsort(dim=1, descending=True)[:, :2]
    gates = probabilities.gather(1, experts)
    gates = gates / gates.sum(dim=1, keepdim=True)
    used = [0] * logits.shape[1]
    dropped = 0
    for c in (0, 1):
        for t in range(len(logits)):
            e = int(experts[t, c])
            if used[e] >= capacity:
                gates[t, c] = 0
                dropped += 1
            else:
                used[e] += 1
    return experts, gates, dropped


# %% right: softmax of the two logits
def top_two(logits, capacity):
    values, experts = logits.topk(2, dim=1)
    gates = values.softmax(dim=1)
    kept = torch.zeros_like(gates, dtype=torch.bool)
    for e in range(logits.shape[1]):
        for_e = (experts == e).T.flatten()
        kept |= ((for_e.cumsum(0) <= capacity) & for_e).view(2, -1).T
    return experts, gates * kept, int((~kept).sum())


# %% wrong: nobody is turned away | wrong | says: Nobody is turned away here
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    return experts, gates / gates.sum(1, keepdim=True), 0


# %% wrong: token by token | wrong | says: Places went out token by token
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(-1, 2)
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% wrong: gates as they are | wrong | says: The two gates of a token are divided by their sum, before
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% wrong: divided after | wrong | says: divided by their sum after some were turned away
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    gates = torch.where(kept, gates, 0.0)
    return experts, gates / gates.sum(1, keepdim=True).clamp(min=1e-9), (~kept).sum().item()


# %% wrong: counts from 0 | wrong | says: One token too many, or too few
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) - 1 <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% wrong: capacity for each choice | wrong | says: First and second choices were counted apart
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    kept = []
    for c in range(2):
        pairs = torch.nn.functional.one_hot(experts[:, c], logits.shape[1])
        kept.append((pairs.cumsum(0) * pairs).sum(1) <= capacity)
    kept = torch.stack(kept, 1)
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% wrong: the likeliest tokens first | wrong | says: Places went to the likeliest tokens
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


# %% wrong: those turned away lose their expert | wrong | says: keeps its expert in `experts`
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return torch.where(kept, experts, -1), torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% wrong: the other way round | wrong | says: \[0\]: |given
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return gates, experts, (~kept).sum().item()
