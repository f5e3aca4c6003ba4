import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { billOfMaterials, cratesOf, licencesText, partsOf } from '../../package/bill.ts'
import { makeKey, readKey, writeSums } from '../../package/sign.ts'
import { temporaryDirectory } from '../support/directory.ts'

const root = process.cwd()
const place = temporaryDirectory()
afterAll(() => place.remove())
const files = ['zod/index.js', 'zod/v4/core/api.js', '@hono/node-server/dist/index.mjs', 'highs/build/highs.wasm'].map(
  (file) => join(root, 'node_modules', file),
)

test('each package is in the bill once, with its licence and the hash of the lockfile', () => {
  const parts = partsOf(root, files)
  expect(parts.map(({ name, licence }) => [name, licence])).toEqual([
    ...[
      ['@hono/node-server', 'MIT'],
      ['highs', 'MIT'],
      ['zod', 'MIT'],
    ],
  ])
  const bill = billOfMaterials({
    name: 'nightshift',
    version: '1.2.0',
    architecture: 'x64',
    parts: [...parts, ...cratesOf(root)],
    builtAt: new Date(0),
  }) as { components: Record<string, unknown>[] }
  expect(bill).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/),
    metadata: { component: { name: 'nightshift', version: '1.2.0' } },
  })
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages['node_modules/zod']
  const zod = bill.components.find(({ name }) => name === 'zod')
  expect(zod).toMatchObject({
    purl: `pkg:npm/zod@${lock.version}`,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(lock.integrity.slice(7), 'base64').toString('hex') }],
  })
  expect(bill.components.some(({ purl }) => String(purl).startsWith('pkg:cargo/tokio@'))).toBe(true)
})

test('the licences file has the text of each package, of Nightshift and of Node', () => {
  const node = join(place.path, 'node-licence')
  writeFileSync(node, 'Node.js is licensed for use as follows')
  const text = licencesText(root, partsOf(root, files), node)
  for (const words of ['Apache License', 'Colin McDonnell', 'Node.js is licensed', /highs \d.*\(MIT\)/])
    expect(text).toMatch(words)
})

test('sums are those of sha256sum, openssl reads their signature, and no signature of an earlier build stays beside them', async () => {
  const dist = join(place.path, 'dist')
  mkdirSync(dist)
  writeFileSync(join(dist, 'nightshift-1.2.0-linux-x64.tar.xz'), 'an archive')
  writeFileSync(join(dist, 'install.sh'), 'a script')
  const keyFile = join(place.path, 'key.pem')
  writeFileSync(join(dist, 'nightshift.pub'), `${makeKey(keyFile)}\n`)
  await writeSums(dist, readKey(keyFile, undefined))
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: dist })
  const words = 'pkeyutl -verify -pubin -inkey nightshift.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig'
  expect(execFileSync('openssl', words.split(' '), { cwd: dist, encoding: 'utf8' })).toContain('Verified Successfully')
  await expect(writeSums(dist, null)).rejects.toThrow(/SHA256SUMS\.sig is of another build/)
  expect(() => makeKey(keyFile)).toThrow(/EEXIST/)
  expect(readKey(undefined, readFileSync(keyFile, 'utf8'))).toBe(readKey(undefined, keyFile))
  expect(readKey(undefined, undefined)).toBe(null)
})
