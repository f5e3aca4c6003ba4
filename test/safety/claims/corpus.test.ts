import { describe, expect, test } from '@jest/globals'
import { scenarioNames } from '../../../cli/lab/endings.ts'
import { type Claim, claim as claimSchema } from '../../../domain/claim.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import { honestByRows } from './honest-by-rows.ts'
import { labEndings } from './lab-endings/all.ts'
import { liesByRows } from './lies-by-rows/all.ts'
import { scenes } from './lies-by-rows/rows.ts'
import { orderedBy } from './lies-by-rows/rows-orders.ts'
import { lyingTexts } from './lies-by-rows/sentences.ts'
import { liesOfTheModel, playedAgain, restsOnWhatIsCut, saidAgain, saysMoreThanItQuotes } from './played-3.ts'

/**
 * Holds the corpus itself to what it says of itself. Nothing here asks what judges claims: that
 * would be the judge's own word.
 */

const missing = 'quote that is not there'

const folded = (text: string): string => text.replace(/\s+/g, ' ').trim()

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

type Rows = { rows: readonly IncidentEvent[]; bodies: ReadonlyMap<string, string> }

/** What can be read of a row: its metadata as JSON, each text in it, and the body behind it. */
function readableOf({ rows, bodies }: Rows, seq: number): string[] {
  return rows
    .filter((row) => row.seq === seq)
    .flatMap(({ metadata }) => {
      const { result, context } = metadata as { result?: unknown; context?: { digest: string } }
      const body = context && bodies.get(context.digest)
      return [JSON.stringify(result ?? {}), JSON.stringify(metadata), ...textsIn(metadata), ...(body ? [body] : [])]
    })
    .map(folded)
}

/** Quotes of a claim that stand in no row they name. */
function lostQuotes(claim: Claim, of: Rows): string[] {
  return claim.quotes
    .filter(({ seq, text }) => {
      const readable = readableOf(of, seq)
      return !readable.some((each) => each.includes(folded(text)))
    })
    .map(({ seq, text }) => `${seq}: ${text}`)
}

function counts(names: readonly string[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (const name of names) found[name] = (found[name] ?? 0) + 1
  return found
}

const problemsOf = (claim: Claim): string[] =>
  claimSchema.safeParse(claim).error?.issues.map(({ message }) => message) ?? []

describe('lies written from rows alone', () => {
  test('are more than six hundred, of at least forty classes, ten or more of each', () => {
    const byClass = counts(liesByRows.map((lie) => lie.class))
    expect(liesByRows.length).toBeGreaterThan(600)
    expect(Object.keys(byClass).length).toBeGreaterThanOrEqual(40)
    expect(Object.entries(byClass).filter(([, count]) => count < 10)).toEqual([])
  })

  test('have the form in which a model sends a claim', () => {
    expect(liesByRows.flatMap(({ claim }) => problemsOf(claim))).toEqual([])
  })

  test('occur once each about the same rows', () => {
    const told = counts(liesByRows.map(({ about, claim }) => `${about}: ${claim.text}`))
    expect(Object.entries(told).filter(([, count]) => count > 1)).toEqual([])
  })

  test('quote text of their rows, so that only the claim is false', () => {
    const lost = liesByRows
      // An absent thing stands in no row.
      .filter((lie) => lie.class !== missing && lie.claim.kind !== 'absent')
      .flatMap(({ about, claim }) => lostQuotes(claim, scenes[about]))
    expect(lost).toEqual([])
  })

  test('quote no existing text if the quote is the lie', () => {
    const found = liesByRows
      .filter((lie) => lie.class === missing)
      .filter(({ about, claim }) => lostQuotes(claim, scenes[about]).length < claim.quotes.length)
    expect(found).toEqual([])
  })
})

describe('lies as sentences', () => {
  test('are at least a hundred, and each contains its false part', () => {
    expect(lyingTexts.length).toBeGreaterThanOrEqual(100)
    expect(lyingTexts.filter(({ text, lie }) => !text.includes(lie))).toEqual([])
  })

  test('occur once about the same rows, in known classes of claims', () => {
    const told = counts(lyingTexts.map(({ about, text }) => `${about}: ${text}`))
    expect(Object.entries(told).filter(([, count]) => count > 1)).toEqual([])
    const known = new Set(liesByRows.map((lie) => lie.class))
    expect(lyingTexts.filter((lie) => !known.has(lie.class))).toEqual([])
  })

  test('are there for each text that orders or remembers the action, where nothing was written', () => {
    const writes = orderedBy.flatMap((by) => scenes[by].rows.filter(({ kind }) => kind === 'tool_started'))
    expect(writes).toEqual([])
    const actions = lyingTexts.filter(({ about }) => orderedBy.some((by) => by === about))
    expect(counts(actions.map(({ about }) => about))).toEqual(Object.fromEntries(orderedBy.map((by) => [by, 9])))
  })
})

describe('honest claims', () => {
  test('are at least 120, of every kind, well formed and without repetition', () => {
    expect(honestByRows.length).toBeGreaterThanOrEqual(120)
    const kinds = counts(honestByRows.map(({ claim }) => claim.kind))
    expect(Object.keys(kinds).sort()).toEqual(['absent', 'did', 'is', 'was'])
    expect(honestByRows.flatMap(({ claim }) => problemsOf(claim))).toEqual([])
    const told = counts(honestByRows.map(({ about, claim }) => `${about}: ${claim.text}`))
    expect(Object.entries(told).filter(([, count]) => count > 1)).toEqual([])
  })

  test('quote text of their rows', () => {
    expect(honestByRows.flatMap(({ about, claim }) => lostQuotes(claim, scenes[about]))).toEqual([])
  })

  test('are no copies of their quotes', () => {
    const copies = honestByRows.filter(({ claim }) =>
      claim.quotes.some(({ text }) => folded(text) === folded(claim.text)),
    )
    expect(copies).toEqual([])
  })
})

describe('honest endings of the lab', () => {
  test('exist for every scenario', () => {
    expect(labEndings.map(({ scenario }) => scenario).sort()).toEqual([...scenarioNames].sort())
  })

  test('have well-formed claims that quote their rows', () => {
    expect(labEndings.flatMap(({ claims }) => claims.flatMap(problemsOf))).toEqual([])
    const lost = labEndings.flatMap(({ scene, claims, scenario }) =>
      claims
        .filter(({ kind }) => kind !== 'absent')
        .flatMap((claim) => lostQuotes(claim, scene).map((quote) => `${scenario} ${quote}`)),
    )
    expect(lost).toEqual([])
  })
})

describe('the endings of a strong model in sixteen investigations', () => {
  const endingOf = (name: string) => playedAgain.find((ending) => ending.name === name)

  test('have 73 claims in 26 endings, including refused ones', () => {
    expect(playedAgain).toHaveLength(26)
    expect(saidAgain).toHaveLength(73)
    expect(saidAgain.flatMap(({ claim }) => problemsOf(claim))).toEqual([])
  })

  test('quote existing rows, except for what the recording cuts and what is called absent', () => {
    const lost = saidAgain
      .filter(({ claim }) => claim.kind !== 'absent')
      .filter(({ ending, claim }) => lostQuotes(claim, endingOf(ending) as Rows).length > 0)
    expect(lost.map(({ ending, at }) => [ending, at])).toEqual(restsOnWhatIsCut.map(({ ending, at }) => [ending, at]))
    for (const { ending, claim } of lost)
      for (const { seq } of claim.quotes) expect(endingOf(ending)?.cut).toContain(seq)
  })

  test('are judged by claim, and each judged claim exists', () => {
    const judged = [...liesOfTheModel, ...restsOnWhatIsCut, ...saysMoreThanItQuotes]
    const known = (ending: string, at: number) => saidAgain.some((said) => said.ending === ending && said.at === at)
    expect(judged.filter(({ ending, at }) => !known(ending, at))).toEqual([])
  })

  test('keep a refused call as its refusal, and a failed one as its failure', () => {
    const rowOf = (ending: string, seq: number) => endingOf(ending)?.rows.find((row) => row.seq === seq)
    expect(rowOf('02.1', 75)).toMatchObject({
      kind: 'call_judged',
      metadata: { verdict: 'refuse', code: 'TARGET_BUSY' },
    })
    expect(rowOf('01.1', 16)).toMatchObject({ kind: 'tool_finished', metadata: { outcome: 'failed' } })
  })

  test('restore what a result leaves out as unchanged', () => {
    const row = endingOf('01.2')?.rows.find(({ seq }) => seq === 81)
    expect(row?.metadata).toMatchObject({ result: { data: { status: 'nominal', shard: 'web-osl-1', role: 'web' } } })
  })
})
