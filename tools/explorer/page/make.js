// Makes elements: make("button", {type: "button", onclick: go, hidden: true}, "text or element", ...).
"use strict";
var redblue = {};
redblue.make_in = (space) => (name, attributes = {}, ...children) => {
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
};
redblue.make = redblue.make_in("http://www.w3.org/1999/xhtml");
