/* Transfers out of the turns of their senders: `serai.replay.turns` is the other end, and says what the columns mean. */
const ON = 0, BACK = 1, STRAY = 2, JUMP = 3;

/* The link, the event and the flags of each row, in order of time. */
export function takeTurns(c, nodes) {
  const { turnOf, turnRows, ownLink, ownCopy, ownFlags, strayEvent, linkTo, birthNode, bornAt, rowAt } = c, rows = rowAt.length;
  const births = bornAt.length, firstLink = starts(nodes, (count) => { for (const n of c.linkFrom) count[n]++; });
  const own = starts(nodes, (count) => { for (let i = 0; i < turnOf.length; i++) count[turnOf[i]] += turnRows[i]; });   // of what stands by sender
  const came = starts(nodes, (count) => {
    for (const n of birthNode) count[n]++;
    for (let n = 0; n < nodes; n++) for (let i = own[n]; i < own[n + 1]; i++) count[linkTo[firstLink[n] + ownLink[i]]]++;
  });
  const copies = new Uint32Array(came[nodes]), end = came.slice(), on = came.slice(), back = came.slice();   // of all nodes, one after the other
  const link = new Uint32Array(rows), event = new Uint32Array(rows), flags = new Uint8Array(rows);
  for (let i = 0, r = 0, born = 0, strays = 0; i < turnOf.length; i++) {
    const n = turnOf[i];
    let at = own[n];
    for (const stop = r + turnRows[i]; r < stop; r++, at++) {
      for (; born < births && bornAt[born] <= rowAt[r]; born++) copies[end[birthNode[born]]++] = born;
      const step = ownCopy[at];
      if (step === STRAY) event[r] = strayEvent[strays++];
      else {
        let copy = on[n];
        if (step !== ON) {
          const far = step - JUMP + 1;
          copy = step === BACK ? back[n] : copy + ((far >>> 1) ^ -(far & 1));
          back[n] = on[n];
        }
        event[r] = copies[copy];
        on[n] = copy + 1;
      }
      link[r] = firstLink[n] + ownLink[at];
      flags[r] = ownFlags[at];
      copies[end[linkTo[link[r]]]++] = event[r];
    }
    own[n] = at;
  }
  Object.assign(c, { link, event, flags });
}

/* Where each node's part begins if parts lie one after the other; `add` counts how long they are. */
function starts(nodes, add) {
  const count = new Uint32Array(nodes + 1);
  add(count);
  for (let n = 0, sum = 0; n <= nodes; n++) [count[n], sum] = [sum, sum + count[n]];
  return count;
}
