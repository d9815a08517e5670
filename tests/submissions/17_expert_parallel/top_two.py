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


# %% wrong: the other way round | wrong | says: \[0\]: |given
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return gates, experts, (~kept).sum().item()
