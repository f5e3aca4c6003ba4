import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { seams } from './seams.ts'
import { type Module, readModule, readModules } from './support/modules.ts'

/** Files that another program loads by their path: what they export is for it. */
const loadedByPath: Record<string, string> = {
  'bench/workflows.ts': "Temporal's bundler",
  'bench/eval/without-gate.ts': 'the loader, in the place of safety/judge.ts',
  'workflows/index.ts': "Temporal's bundler",
}

/** Files that take a module of ours whole, which hides what of it is used. */
const takesWhole: Record<string, string> = {
  'bench/workflows.ts': 'all workflows, and those of the bench beside them',
  'bench/eval/without-gate.ts': 'the module that it stands for, but for one function',
  'migrations/migrate.ts': 'a migration is its `up`, which Kysely calls',
}

const isTest = (path: string) => path.startsWith('test/')
/** A configuration is read by its tool, and a declaration repeats the exports of its module. */
const isExempt = (path: string) => path in loadedByPath || /\.config\.[jt]s$|\.d\.ts$/.test(path)

const modules = readModules()
const exported = modules
  .filter(({ path }) => !isTest(path) && !isExempt(path))
  .flatMap(({ path, exports }) => exports.map((name) => `${path} ${name}`))
const isBench = (path: string) => path.startsWith('bench/')
const usedByProduct = importedBy(({ path }) => !isTest(path) && !isBench(path))
const usedByBench = importedBy(({ path }) => isBench(path))
const usedByTests = importedBy(({ path }) => isTest(path))
const listed = Object.entries(seams).flatMap(([path, names]) => names.map((name) => `${path} ${name}`))

/** As `path name`; `path *` where a module is taken whole. */
function importedBy(isMeant: (module: Module) => boolean): Set<string> {
  return new Set(modules.filter(isMeant).flatMap(({ imports }) => imports.map(({ from, name }) => `${from} ${name}`)))
}

const isIn = (used: Set<string>, name: string) => used.has(name) || used.has(name.replace(/ .*/, ' *'))
/**
 * A measurement is no use of the product: what it alone needs is a seam, but for what the bench
 * exports itself.
 */
const isUsed = (name: string) => isIn(usedByProduct, name) || (isBench(name) && isIn(usedByBench, name))

test('each export of a file is used by another file, or is listed as a seam of the tests', () => {
  const unused = exported.filter((name) => !isUsed(name) && !listed.includes(name))
  expect(unused).toEqual([])
  expect(exported.length).toBeGreaterThan(1_000)
})

test('a module is imported by its names, so that an unused name is found', () => {
  const ours = new Set(modules.map(({ path }) => path))
  const whole = modules.filter(({ path, imports }) => {
    return !(path in takesWhole) && imports.some(({ from, name }) => name === '*' && ours.has(from))
  })
  expect(whole.map(({ path }) => path)).toEqual([])
})

test.each([
  ["import * as format from './format.ts'\nformat.cut(format.name)", ['cut', 'name']],
  ["import * as format from './format.ts'\nhandOn(format)", ['*']],
  ["export * from './format.ts'", ['*']],
  ["import './format.ts'", []],
  ["const { cut, name: n } = await import('./format.ts')", ['cut', 'name']],
  ["(await import('./format.ts')).cut('a')", ['cut']],
  ["import { cut } from './format.ts'", ['cut']],
])('%j imports those names', (text, names) => {
  for (const path of ['domain/a.ts', 'test/a.test.ts']) {
    expect([path, readModule(path, text).imports.map(({ name }) => name)]).toEqual([path, names])
  }
})

test('a source file has code', () => {
  const empty = modules.filter(
    ({ path }) =>
      !readFileSync(path, 'utf8')
        .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
        .trim(),
  )
  expect(empty.map(({ path }) => path)).toEqual([])
})

test('a seam is exported, a test or a benchmark uses it, and the product does not', () => {
  const wrong = listed.filter(
    (name) => !exported.includes(name) || isUsed(name) || !(isIn(usedByTests, name) || isIn(usedByBench, name)),
  )
  expect(wrong).toEqual([])
})

/**
 * Exported types, classes and components with the files that declare them; one that is passed on is
 * declared elsewhere.
 */
const declared = new Map<string, string[]>()
for (const { path } of modules.filter(({ path }) => !isTest(path) && !isExempt(path))) {
  const names = readFileSync(path, 'utf8').matchAll(/^export (?:type|interface|class|function|const) ([A-Z]\w*)/gm)
  for (const [, name = ''] of names) declared.set(name, [...(declared.get(name) ?? []), path])
}

test('a type, a class or a component has a name that no other file exports', () => {
  expect([...declared].filter(([, paths]) => paths.length > 1)).toEqual([])
  expect(declared.size).toBeGreaterThan(500)
})

test('no type is exported under a name that every folder could use', () => {
  const vague = ['Asked', 'Found', 'Line', 'Look', 'Outcome', 'Place', 'Row', 'Run', 'Said', 'Told']
  expect(vague.filter((name) => declared.has(name))).toEqual([])
})
