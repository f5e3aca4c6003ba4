import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** The platform names that Temporal's native library uses. */
const targets: Record<Architecture, string> = { x64: 'x86_64-unknown-linux-gnu', arm64: 'aarch64-unknown-linux-gnu' }

type Programs = {
  /** The file with the licence of Node and of its bundled parts. */
  nodeLicence: string
  nodeVersion: string
}

/**
 * Copies Node into `bin` and Temporal's native library into `lib`, both for one architecture and
 * without symbols.
 */
export function placePrograms(root: string, to: string, architecture: Architecture): Programs {
  const node = nodePackage(root, architecture)
  mkdirSync(join(to, 'bin'), { recursive: true })
  const program = join(to, 'bin/node')
  cpSync(join(node, 'bin/node'), program)
  chmodSync(program, 0o755)
  const library = join('node_modules/@temporalio/core-bridge/releases', targets[architecture], 'index.node')
  mkdirSync(join(to, 'lib', library, '..'), { recursive: true })
  cpSync(join(root, library), join(to, 'lib', library))
  strip(program)
  strip(join(to, 'lib', library))
  const { version } = JSON.parse(readFileSync(join(node, 'package.json'), 'utf8')) as { version: string }
  return { nodeLicence: join(node, 'LICENSE'), nodeVersion: version }
}

/**
 * Returns the npm package of Node for this architecture. npm has installed the package for this
 * machine's architecture. A package for another architecture is downloaded in the version that the
 * lockfile pins.
 */
function nodePackage(root: string, architecture: Architecture): string {
  const name = `node-linux-${architecture}`
  const installed = join(root, 'node_modules', name)
  if (existsSync(join(installed, 'bin/node'))) return installed
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const version = manifest.optionalDependencies[name] as string
  const cached = join(root, '.cache', `${name}-${version}`)
  if (existsSync(join(cached, 'package/bin/node'))) return join(cached, 'package')

  const draft = mkdtempSync(join(tmpdir(), 'nightshift-node-'))
  try {
    const packed = JSON.parse(run('npm', ['pack', `${name}@${version}`, '--json', '--pack-destination', draft], root))
    const { filename, integrity } = packed[0] as { filename: string; integrity: string }
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
    const pinned = lock.packages[`node_modules/${name}`]?.integrity as string | undefined
    if (integrity !== pinned) throw new Error(`${name}@${version} is not what package-lock.json pins (${pinned}).`)
    mkdirSync(cached, { recursive: true })
    run('tar', ['-xzf', join(draft, filename), '-C', cached], root)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return join(cached, 'package')
}

/** Removes symbols from a file. Leaves the file unchanged if `strip` does not support it. */
function strip(file: string): void {
  spawnSync('strip', ['--strip-unneeded', file], { stdio: 'ignore' })
}

/**
 * Returns tar options with which equal files make equal archives: all files owned by root, sorted
 * by name, with one date.
 */
export function asRootAt(madeAt: Date): string[] {
  const mtime = `--mtime=@${Math.floor(madeAt.getTime() / 1_000)}`
  return ['--owner=0', '--group=0', '--numeric-owner', '--mode=u+rwX,go+rX,go-w', mtime, '--sort=name']
}

/** Runs a program and returns its output. Throws an error with the error output if it fails. */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env?: Record<string, string | undefined>,
): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    ...(env && { env }),
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (error) throw new Error(`${program} does not run: ${error.message}`)
  if (status !== 0) throw new Error(`${program} ${args[0] ?? ''} failed: ${stderr.trim().slice(-2_000)}`)
  return stdout
}
