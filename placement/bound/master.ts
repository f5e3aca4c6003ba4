import type { Instance } from '../cluster/instance.ts'
import type { Kinds } from '../cluster/kinds.ts'
import type { Bound, Master } from './bound.ts'
import type { Engine } from './engine.ts'
import type { LinearModel, Row, Term } from './linear-model.ts'

/** The configuration program over these patterns; a kind that is not all placed costs `slackCost` each. */
export function masterOf({ kinds, has }: Kinds, engine: Engine, slackCost: number, untilMs: number): Master {
  return async (patterns) => {
    const demand: Row[] = kinds.map(({ count }, kind) => ({ terms: [[patterns.length + kind, 1]], atLeast: count }))
    const one: Row[] = has.map(() => ({ terms: [], equal: 1 }))
    const objective: Term[] = kinds.map((_, kind) => [patterns.length + kind, slackCost])
    for (const [column, { host, leaves, comes, cost }] of patterns.entries()) {
      if (cost > 0) objective.push([column, cost])
      one[host]!.terms.push([column, 1])
      for (const [kind, count] of has[host]!.entries()) {
        const there = count - leaves[kind]! + comes[kind]!
        if (there > 0) demand[kind]!.terms.push([column, there])
      }
    }
    const model: LinearModel = {
      ...{ columns: patterns.length + kinds.length, binaries: 0 },
      ...{ objective, rows: [...demand, ...one] },
    }
    const answer = await engine.solve(model, untilMs - performance.now())
    if (answer.status !== 'optimal' || !answer.prices) return null
    return {
      kind: answer.prices.slice(0, kinds.length).map((price) => Math.max(0, price)),
      host: answer.prices.slice(kinds.length),
      shares: answer.values.slice(0, patterns.length),
    }
  }
}

/** VMs whose like leave their host in the bound's patterns: of so many pairs of host and kind, those used most. */
export function likelyMovers(
  instance: Instance,
  { kindOf }: Kinds,
  { patterns, shares }: Bound,
  most: number,
): number[] {
  const pairs = new Map<string, number>()
  for (const [index, { host, leaves, cost }] of patterns.entries()) {
    if (cost === 0) continue
    for (const [kind, count] of leaves.entries()) {
      if (count === 0) continue
      const key = `${host} ${kind}`
      pairs.set(key, Math.max(pairs.get(key) ?? 0, shares[index] ?? 0))
    }
  }
  const used = [...pairs].sort((a, b) => b[1] - a[1]).slice(0, most)
  const chosen = new Set(used.map(([key]) => key))
  return instance.home.flatMap((host, vm) => (instance.movable[vm] && chosen.has(`${host} ${kindOf[vm]}`) ? [vm] : []))
}
