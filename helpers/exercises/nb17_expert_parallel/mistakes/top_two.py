# %% nobody is turned away
# No token is turned away, although some experts were chosen by more than {capacity}.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    return experts, gates / gates.sum(1, keepdim=True), 0


# %% token by token
# Places were given token by token, both choices of each. First come all first choices, then all second
# ones.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(-1, 2)
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% gates as they are
# The two gates of a token are not divided by their sum. Divide before tokens are turned away.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% divided after
# The gates were divided by their sum after tokens were turned away. Divide before: what a token loses is
# not given to its other expert.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    gates = torch.where(kept, gates, 0.0)
    return experts, gates / gates.sum(1, keepdim=True).clamp(min=1e-9), (~kept).sum().item()


# %% counts from 0
# An expert takes one token too many. It takes `capacity` tokens and turns away the next.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) - 1 <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% capacity for each choice
# First and second choices were counted separately. An expert has `capacity` places for both together.
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
# Places were given to the likeliest tokens first. Places are given in the order of the tokens.
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


# %% no gradient
# The values are right, but no gradient, or a wrong one, reaches the logits, so the router never learns.
# Compute the gates without no_grad or detach.
@torch.no_grad()
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()


# %% the sum of the gates is detached
# The values are right, but no gradient, or a wrong one, reaches the logits, so the router never learns.
# Compute the gates without no_grad or detach.
def top_two(logits, capacity):
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True).detach()
    pairs = torch.nn.functional.one_hot(experts.T.flatten(), logits.shape[1])
    kept = ((pairs.cumsum(0) * pairs).sum(1) <= capacity).view(2, -1).T
    return experts, torch.where(kept, gates, 0.0), (~kept).sum().item()
