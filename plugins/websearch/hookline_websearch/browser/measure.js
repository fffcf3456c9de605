// Run in a page: what is on it, in numbers. One expression.
() => {
  const visible = e => {
    const s = getComputedStyle(e), b = e.getBoundingClientRect();
    return s.display !== "none" && s.visibility !== "hidden" && b.width > 0 && b.height > 0;
  };
  const share = new Map();
  const add = (kind, value, weight) => {
    if (!share.has(kind)) share.set(kind, new Map());
    const m = share.get(kind);
    m.set(value, (m.get(value) || 0) + weight);
  };
  const all = Array.from(document.body.querySelectorAll("*")).slice(0, 4000).filter(visible);
  for (const e of [document.body, ...all]) {
    const s = getComputedStyle(e), b = e.getBoundingClientRect();
    const text = Array.from(e.childNodes).filter(n => n.nodeType === 3)
      .map(n => n.data.trim()).join("").length;
    if (text) {
      add("text", s.color, text);
      add("font", s.fontFamily.split(",").slice(0, 2).join(","), text);
      add("size", s.fontSize + "/" + s.fontWeight, text);
    }
    const bg = s.backgroundColor;
    if (bg !== "rgba(0, 0, 0, 0)") add("background", bg, b.width * b.height);
  }
  const top = kind => Array.from(share.get(kind) || []).sort((a, b) => b[1] - a[1])
    .slice(0, 5).map(p => p[0]);
  const style = e => {
    if (!e) return null;
    const s = getComputedStyle(e);
    return {font: s.fontFamily.split(",")[0], size: s.fontSize, weight: s.fontWeight,
      color: s.color, background: s.backgroundColor, radius: s.borderRadius, padding: s.padding,
      border: s.borderTopWidth + " " + s.borderTopStyle + " " + s.borderTopColor,
      shadow: s.boxShadow === "none" ? "" : "yes", transform: s.textTransform};
  };
  const first = q => Array.from(document.querySelectorAll(q)).find(visible);
  const region = (name, q) => {
    const e = first(q);
    if (!e) return null;
    const b = e.getBoundingClientRect(), s = getComputedStyle(e);
    const flow = s.display.includes("grid")
      ? "grid of " + s.gridTemplateColumns.split(" ").length + " columns"
      : s.display.includes("flex") ? "flex " + s.flexDirection : "block";
    return {name, x: Math.round(b.x), y: Math.round(b.y), width: Math.round(b.width),
      height: Math.round(b.height), flow, position: s.position, background: s.backgroundColor};
  };
  const grids = all.filter(e => {
    const s = getComputedStyle(e);
    return (s.display.includes("grid") || (s.display.includes("flex") && s.flexDirection === "row"))
      && e.children.length > 2 && e.getBoundingClientRect().width > 500;
  }).slice(0, 3).map(e => Math.min(e.children.length, 99) + " children in a " +
    (getComputedStyle(e).display.includes("grid")
      ? "grid of " + getComputedStyle(e).gridTemplateColumns.split(" ").length + " columns"
      : "flex row"));
  const body = getComputedStyle(document.body), root = getComputedStyle(document.documentElement);
  const clear = "rgba(0, 0, 0, 0)";
  return {
    title: document.title, page: body.backgroundColor !== clear ? body.backgroundColor
      : root.backgroundColor !== clear ? root.backgroundColor : "rgb(255, 255, 255)",
    backgrounds: top("background"), colors: top("text"), fonts: top("font"), sizes: top("size"),
    heading: style(first("h1")), subheading: style(first("h2")), text: style(first("p")),
    link: style(first("main a, article a, p a, a")),
    button: style(first("button, .btn, .button, [role=button], input[type=submit]")),
    regions: [region("header", "header, [role=banner]"), region("navigation", "nav"),
      region("main", "main, [role=main], article"), region("sidebar", "aside"),
      region("footer", "footer, [role=contentinfo]")].filter(r => r),
    grids, width: document.documentElement.clientWidth,
    height: document.documentElement.scrollHeight,
  };
}
