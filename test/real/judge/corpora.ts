import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from '@babel/parser'
import fc from 'fast-check'
import { dressCommand, dressText, wordsOf } from '../../safety/command/dresses.ts'
import { append, enclose, text, wrap } from '../../safety/command/layers.ts'

const tests = join(import.meta.dirname, '../..')

/** Every text of `test/data/commands`. */
export function labelled(): string[] {
  const folder = join(tests, 'data/commands')
  return readdirSync(folder).flatMap((name) =>
    (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { command: string }[]).map(({ command }) => command),
  )
}

/**
 * Every text in quotes of the tests of the judge, and each line of those that have several: their
 * tables stand there as texts.
 */
export function inTables(): string[] {
  const folder = join(tests, 'safety/command')
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts'))
  const texts = files.flatMap((name) => textsIn(readFileSync(join(folder, name), 'utf8')))
  return texts.flatMap((text) => [text, ...text.split(/[\n|]/)]).map((text) => text.trim())
}

type Node = { type?: string; value?: unknown; quasis?: { value: { cooked: string } }[]; expressions?: unknown[] }

function textsIn(source: string): string[] {
  const found: string[] = []
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const each of node) walk(each)
      return
    }
    if (node === null || typeof node !== 'object') return
    const { type, value, quasis, expressions } = node as Node
    if (type === 'StringLiteral') found.push(String(value))
    if (type === 'TemplateLiteral' && expressions?.length === 0) found.push(quasis?.[0]?.value.cooked ?? '')
    for (const each of Object.values(node)) walk(each)
  }
  walk(parse(source, { sourceType: 'module', plugins: ['typescript'], attachComment: false }).program)
  return found
}

/**
 * Reads of the labelled texts in the dresses of `disguises.test.ts`, and the layers of
 * `properties.test.ts` over its commands.
 */
export function dressed(seed: number, count: number): string[] {
  const bare = labelled()
  const chosen = fc.sample(fc.tuple(fc.constantFrom(...bare), fc.nat(1_000)), { seed, numRuns: count })
  const dresses = [...Object.values(dressCommand)]
  const covers = [...Object.values(dressText)]
  const inDresses = chosen.flatMap(([command, at]) => {
    const words = wordsOf(command)
    if (at % 3 === 0) return [covers[at % covers.length]!(command)]
    return words ? [dresses[at % dresses.length]!(words)] : []
  })
  const layers = fc.tuple(
    fc.oneof(text, fc.constantFrom(...bare)),
    fc.array(fc.constantFrom(...wrap, ...append), { maxLength: 2 }),
    fc.option(fc.constantFrom(...enclose), { nil: undefined }),
  )
  const inLayers = fc
    .sample(layers, { seed, numRuns: count })
    .map(([bare, steps, last]) => [...steps, ...(last ? [last] : [])].reduce((text, step) => step(text), bare))
  return [...inDresses, ...inLayers]
}
