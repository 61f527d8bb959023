"""The only script: tables sort by a click on a heading, and say when they are wider than the page.

Nothing needs it.
"""

import base64
import hashlib

__all__ = ["SCRIPT", "fingerprint"]

SCRIPT = (
    """
for(const table of document.querySelectorAll("table[data-sort]")){
const body=table.tBodies[0];
const heads=[...table.tHead.rows].pop().cells;
[...heads].forEach((head,k)=>{
const button=document.createElement("button");
button.type="button";
button.append(...head.childNodes);
head.append(button);
button.addEventListener("click",()=>{
const up=head.getAttribute("aria-sort")!=="ascending";
for(const other of heads)other.removeAttribute("aria-sort");
head.setAttribute("aria-sort",up?"ascending":"descending");
const value=row=>{
const text=row.cells[k].textContent.replace(/[\\s\\u202f]/g,"").replace("\\u2212","-");
const number=parseFloat(text.replace("<",""));
return Number.isNaN(number)?text:number};
const rows=[...body.rows].map(row=>[value(row),row]);
rows.sort(([a],[b])=>{
const order=typeof a===typeof b?(a<b?-1:a>b?1:0):typeof a==="number"?-1:1;
return up?order:-order});
body.append(...rows.map(pair=>pair[1]))})})}
const watch=new ResizeObserver(entries=>{for(const {target:box} of entries){
const before=box.previousElementSibling;
const cue=before&&before.className==="cue"?before:null;
const cut=box.scrollWidth>box.clientWidth+1;
if(cut&&!cue){
const words=document.createElement("p");
words.className="cue";
words.textContent=document.body.dataset.cue;
box.before(words)}
else if(!cut&&cue)cue.remove()}});
for(const box of document.querySelectorAll(".scroll"))watch.observe(box);
"""
).strip()


def fingerprint(script: str) -> str:
    """The hash by which a content security policy allows a script."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
