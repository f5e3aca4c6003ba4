import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { faults } from './faults.ts'

/** Cases of Cloud-OpsBench as their files hold them: what was read on the way to a diagnosis, and the diagnosis. */

export type Reading = {
  /** The path under which a read-only API would answer it: what was asked, of what. */
  path: string
  /** As it was answered: text, or JSON that is served as JSON. */
  body: string
  isJson: boolean
}

export type Diagnosis = {
  claim: string
  /** The reading that decides, by its place, and the words of it that do. */
  at: number
  words: string
}

export type Case = {
  id: string
  category: string
  fault: string
  object: string
  readings: Reading[]
  /** Null: no reading on the way holds what would show the cause. */
  diagnosis: Diagnosis | null
}

const metadata = z.looseObject({
  result: z.looseObject({ fault_object: z.string(), root_cause: z.string() }),
})
const trace = z.looseObject({
  diagnostic_trace: z.array(z.looseObject({ tool_name: z.string(), calling: z.string(), output: z.unknown() })),
})

/** Which of the cases: those with even numbers, which the table of faults was made with, or the others. */
export type Which = 'even' | 'odd'

/** Every recorded way of every case, in the order of its folders. Throws where the folder holds no such cases. */
export function readCases(directory: string, which: Which): Case[] {
  const top = join(directory, 'benchmark')
  if (!existsSync(top)) throw new Error(`${directory} has no folder benchmark: give the folder of Cloud-OpsBench`)
  const cases: Case[] = []
  for (const system of foldersIn(top)) {
    for (const category of foldersIn(join(top, system))) {
      for (const number of foldersIn(join(top, system, category)).sort((a, b) => Number(a) - Number(b))) {
        if (Number(number) % 2 !== (which === 'even' ? 0 : 1)) continue
        cases.push(...readCase(directory, [system, category, number]))
      }
    }
  }
  return cases
}

const foldersIn = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true })
    .filter((each) => each.isDirectory())
    .map(({ name }) => name)
    .sort()

function readCase(directory: string, place: [string, string, string]): Case[] {
  const [system, category, number] = place
  const given = readJson(join(directory, 'benchmark', ...place, 'metadata.json'))
  const { fault_object: object, root_cause: fault } = metadata.parse(given).result
  return ['path1', 'path2'].flatMap((way) => {
    const file = join(directory, 'golden-trajectory', ...place, `${way}.json`)
    if (!existsSync(file)) return []
    const readings = trace.parse(readJson(file)).diagnostic_trace.map((step) => toReading(step))
    const name = object.split('/').at(-1) ?? object
    const diagnosis = findDiagnosis(readings, fault, name)
    return [{ id: `${system}/${category}/${number}/${way}`, category, fault, object: name, readings, diagnosis }]
  })
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

function toReading({
  tool_name: tool,
  calling,
  output,
}: {
  tool_name: string
  calling: string
  output?: unknown
}): Reading {
  const words = [...calling.matchAll(/\b\w+: '([^']*)'/g)].map(([, value]) => value)
  const path = [tool, ...words].map((word) => encodeURIComponent(word ?? '')).join('/')
  const body = unwrap(output)
  if (typeof body === 'string') return { path, body, isJson: false }
  // As the product prints JSON, so that a pattern sees what a model sees.
  return { path, body: JSON.stringify(body, null, 1), isJson: true }
}

/** JSON that was written as a text, as often as that was done. */
function unwrap(output: unknown): unknown {
  if (typeof output !== 'string') return output
  try {
    return unwrap(JSON.parse(output))
  } catch {
    return output
  }
}

/** The first reading that says what the table says of the fault; a later one where it says it better. */
function findDiagnosis(readings: readonly Reading[], fault: string, object: string): Diagnosis | null {
  const known = faults[fault]
  if (!known) return null
  const escaped = object.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const short = escaped.replace(/^ts-|-service$/g, '')
  for (const shows of known.shows) {
    const pattern = new RegExp(shows.replaceAll('{o}', escaped).replaceAll('{s}', short), 'm')
    for (const [at, { body }] of readings.entries()) {
      const q = pattern.exec(body)?.groups?.q
      if (q === undefined) continue
      const words = q.trim()
      const claim = known.says.replaceAll('{o}', object).replaceAll('{q}', words.replaceAll('"', ''))
      return { claim, at, words }
    }
  }
  return null
}
