import { globSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { INSTRUMENTER_CONSTANTS, type InstrumenterContext } from '@stryker-mutator/api/core'
import type { Ignorer, NodePath } from '@stryker-mutator/api/ignore'
import { declareClassPlugin, declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin'
import {
  type DryRunOptions,
  type DryRunResult,
  DryRunStatus,
  determineHitLimitReached,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  type TestRunnerCapabilities,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner'
import { beginFile, type Registered, registered } from './globals.ts'

/**
 * Runs the very files that Jest runs, in one process that stays: the kernel is pure, so nothing has
 * to be loaded again between two mutants, and one takes milliseconds instead of the seconds in
 * which Jest loads each test file again.
 */
class InProcessRunner implements TestRunner {
  #tests: Registered[] = []
  #tookMs = new Map<string, number>()

  capabilities(): TestRunnerCapabilities {
    // Imports stay: Stryker starts another process for a mutant that acts while loading.
    return { reloadEnvironment: false }
  }

  async init(): Promise<void> {
    const stands = { '@jest/globals': './globals.ts', 'fast-check': './fast-check.ts' }
    const own = new URL('./fast-check.ts', import.meta.url).href
    registerHooks({
      resolve(specifier, context, next) {
        const stand = Object.hasOwn(stands, specifier) && stands[specifier as keyof typeof stands]
        if (!stand || context.parentURL === own) return next(specifier, context)
        return { url: new URL(stand, import.meta.url).href, format: 'module-typescript', shortCircuit: true }
      },
    })
  }

  async dryRun(_options: DryRunOptions): Promise<DryRunResult> {
    try {
      await this.#load()
    } catch (error) {
      return { status: DryRunStatus.Error, errorMessage: String(error instanceof Error ? error.stack : error) }
    }
    const tests = await this.#run(this.#tests, false)
    for (const test of tests) this.#tookMs.set(test.id, test.timeSpentMs)
    return { status: DryRunStatus.Complete, tests, mutantCoverage: context().mutantCoverage }
  }

  async mutantRun(options: MutantRunOptions): Promise<MutantRunResult> {
    const shared = context()
    shared.activeMutant = options.mutantActivation === 'static' ? options.activeMutant.id : undefined
    await this.#load()
    shared.activeMutant = options.activeMutant.id
    shared.hitCount = options.hitLimit === undefined ? undefined : 0
    shared.hitLimit = options.hitLimit
    const wanted = options.testFilter && new Set(options.testFilter)
    // The quick ones first: most mutants fall to the first test that meets them.
    const tests = this.#tests
      .filter(({ id }) => !wanted || wanted.has(id))
      .sort((a, b) => (this.#tookMs.get(a.id) ?? 0) - (this.#tookMs.get(b.id) ?? 0))
    const results = await this.#run(tests, !options.disableBail)
    shared.activeMutant = undefined
    const endless = determineHitLimitReached(shared.hitCount, shared.hitLimit)
    return toMutantRunResult(endless ?? { status: DryRunStatus.Complete, tests: results }, options.disableBail)
  }

  async #load(): Promise<void> {
    if (this.#tests.length > 0) return
    for (const file of globSync(testFiles).sort()) {
      beginFile(file)
      await import(pathToFileURL(file).href)
    }
    this.#tests = registered().filter(({ id }) => !leftOut.some((title) => title.test(id)))
  }

  async #run(tests: readonly Registered[], bail: boolean): Promise<TestResult[]> {
    const results: TestResult[] = []
    for (const test of tests) {
      context().currentTestId = test.id
      const began = performance.now()
      const failure = await failureOf(test)
      const base = { id: test.id, name: test.id, fileName: test.file, timeSpentMs: performance.now() - began }
      results.push(
        failure === null
          ? { ...base, status: TestStatus.Success }
          : { ...base, status: TestStatus.Failed, failureMessage: failure },
      )
      if (bail && failure !== null) break
    }
    context().currentTestId = undefined
    return results
  }
}

const testFiles = 'test/safety/**/*.test.ts'

/**
 * Left out: what no mutant needs or what would only slow each down. Fewer tests can lower a score,
 * never raise it.
 */
const leftOut = [
  // A module that nobody has used yet cannot be had here.
  /nothing is a read before the parser is loaded$/,
  // A stopwatch says nothing about instrumented code.
  /takes well under a second$/,
  /also long and odd ones$/,
  /no text takes long to judge$/,
  // How deep the stack reaches depends on what ran before.
  /a nest of calls is not a read$/,
  // Hundreds of lives, and texts at random: seconds for each mutant that survives them.
  /whatever happened in between$/,
  /every label of whole lives/,
  /no text makes the judge throw$/,
]

async function failureOf(test: Registered): Promise<string | null> {
  try {
    for (const prepare of test.before) await prepare()
    await test.run()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function context(): InstrumenterContext {
  const world = globalThis as unknown as Record<string, InstrumenterContext | undefined>
  world[INSTRUMENTER_CONSTANTS.NAMESPACE] ??= {}
  return world[INSTRUMENTER_CONSTANTS.NAMESPACE] as InstrumenterContext
}

/** The part of Babel's tree that is asked here. */
type Node = { type: string; value?: unknown; quasis?: { value: { raw: string } }[] }
type Path = NodePath & { node: Node; parentPath: Path | null }

/**
 * Leaves sentences alone. They are for readers, and no test should hold them to the letter: a
 * mutant that empties one survives and says nothing. A list of words that code splits or compares
 * is no sentence.
 */
const prose: Ignorer = {
  shouldIgnore(found) {
    const path = found as Path
    const text = textOf(path.node)
    if (text === null || !/\p{L}[,:;')]* \(?'?(?:\p{L}|\$)/u.test(text)) return undefined
    return path.parentPath && isRead(path.parentPath.node) ? undefined : 'a sentence for people'
  },
}

function textOf(node: Node): string | null {
  if (node.type === 'StringLiteral') return String(node.value)
  return node.quasis?.map(({ value }) => value.raw).join('$') ?? null
}

/** `'a b'.split(' ')`, `text === 'a b'` and `case 'a b'` are read by code. */
function isRead({ type }: Node): boolean {
  return type === 'MemberExpression' || type === 'BinaryExpression' || type === 'SwitchCase'
}

export const strykerPlugins = [
  declareClassPlugin(PluginKind.TestRunner, 'in-process', InProcessRunner),
  declareValuePlugin(PluginKind.Ignore, 'prose', prose),
]
