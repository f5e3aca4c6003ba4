import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { writeImage } from '../../package/image.ts'
import { temporaryDirectory } from '../support/directory.ts'

const place = temporaryDirectory()
afterAll(() => place.remove())
const at = (...names: string[]) => join(place.path, ...names)
const read = (file: string) => JSON.parse(readFileSync(at('image', file), 'utf8'))

test('an image has the contents of its digests, and the settings of the Dockerfile', () => {
  for (const folder of ['base/etc', 'package/bin', 'image']) mkdirSync(at(folder), { recursive: true })
  writeFileSync(at('base/etc/os-release'), 'ID=debian\n')
  writeFileSync(at('package/bin/nightshift'), '#!/bin/sh\n')
  execFileSync('tar', ['-cf', at('base.tar'), '-C', at('base'), '.'])
  const target = at('image.tar')
  const options = {
    folder: at('package'),
    base: at('base.tar'),
    architecture: 'arm64',
    name: 'nightshift:9.9.9',
  } as const
  writeImage({ ...options, target, madeAt: new Date('2026-11-28T00:00:00Z') })
  const first = readFileSync(target)
  writeImage({ ...options, target, madeAt: new Date('2026-11-28T00:00:00Z') })
  expect(readFileSync(target).equals(first)).toBe(true)

  execFileSync('tar', ['-xf', target, '-C', at('image')])
  const [described] = read('index.json').manifests
  const blob = (digest: string) => {
    const bytes = readFileSync(at('image/blobs', digest.replace(':', '/')))
    expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest)
    return bytes
  }
  const manifest = JSON.parse(blob(described.digest).toString())
  for (const { digest, size } of [described, ...manifest.layers]) expect(blob(digest).length).toBe(size)
  const { config, architecture } = JSON.parse(blob(manifest.config.digest).toString())
  expect([architecture, config.User, config.WorkingDir, config.Cmd]).toEqual([
    ...['arm64', '1000:1000', '/opt/nightshift/lib'],
    ['node', 'api/main.js'],
  ])
  expect(config.Env).toContain('NIGHTSHIFT_COMMAND=docker compose exec api nightshift')
  const [docker] = read('manifest.json')
  expect(docker.RepoTags).toEqual(['nightshift:9.9.9'])
  expect(docker.Layers).toHaveLength(2)
  const paths = execFileSync('tar', ['-tzf', at('image', docker.Layers[1])], { encoding: 'utf8' })
  expect(paths).toContain('opt/nightshift/bin/nightshift')
})
