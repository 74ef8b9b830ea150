def reference(inputs, axes):
    x = inputs["x"].double()
    return {"y": (x - x.mean(-1, keepdim=True)) * inputs["w"].double()}
