import { format } from 'node:util'
import { expect } from 'expect'

/** Stands in for `@jest/globals` under Stryker: the same `expect`, and what test/safety uses. */

type Body = () => unknown
export type Registered = { id: string; file: string; before: readonly Body[]; run: Body }
type Scope = { title: string; before: Body[]; outer: Scope | null }

let file = ''
let scope: Scope = { title: '', before: [], outer: null }
const tests = new Map<string, Registered>()

export function beginFile(path: string): void {
  file = path
  scope = { title: path, before: [], outer: null }
}

export function registered(): Registered[] {
  return [...tests.values()]
}

export { expect }

export const test = Object.assign(register, {
  /** An expected failure kills nothing. */
  failing: Object.assign(() => {}, { each: () => () => {} }),
  each:
    (rows: readonly unknown[]) =>
    (title: string, body: (...cells: never[]) => unknown): void => {
      for (const row of rows) {
        const cells = (Array.isArray(row) ? row : [row]) as never[]
        register(titleOf(title, cells), () => body(...cells))
      }
    },
})
export const it = test

export const describe = Object.assign(enclose, {
  each:
    (rows: readonly unknown[]) =>
    (title: string, body: (...cells: never[]) => void): void => {
      for (const row of rows) {
        const cells = (Array.isArray(row) ? row : [row]) as never[]
        enclose(titleOf(title, cells), () => body(...cells))
      }
    },
})

/**
 * Done once, in front of the first test that needs it, so that what it covers counts as covered by
 * a test.
 */
export function beforeAll(body: Body): void {
  let done: unknown
  scope.before.push(() => {
    done ??= body() ?? true
    return done
  })
}

function enclose(title: string, body: () => void): void {
  const outer = scope
  scope = { title: `${outer.title} › ${title}`, before: [], outer }
  body()
  scope = outer
}

function register(title: string, run: Body): void {
  const wanted = `${scope.title} › ${title}`
  let id = wanted
  for (let n = 2; tests.has(id); n += 1) id = `${wanted} (${n})`
  const scopes: Scope[] = []
  for (let each: Scope | null = scope; each; each = each.outer) scopes.unshift(each)
  // Read when the test runs: a beforeAll may stand behind it.
  tests.set(id, {
    id,
    file,
    get before() {
      return scopes.flatMap(({ before }) => before)
    },
    run,
  })
}

function titleOf(title: string, cells: readonly unknown[]): string {
  const holes = title.match(/%[sdijopf]/g)?.length ?? 0
  return format(title, ...cells.slice(0, holes))
}
