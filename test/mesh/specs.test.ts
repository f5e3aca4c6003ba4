import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { capabilitiesOn } from '../../mesh/agent/agent-state.ts'
import { type MeshSpec, meshSpecs, specOf } from '../../mesh/registry.ts'

const yes = (value: boolean | undefined): string => (value ? 'yes' : 'no')

function askedAbout({ asked, command, capability, showsNoContent }: MeshSpec): string {
  if (asked) return 'always'
  if (showsNoContent) return 'never: it shows no content'
  if (command) return 'unless its arguments prove a read'
  return /^(?:fs|disk|git)\./.test(capability) ? 'for secret files' : 'no'
}

const rowOf = (spec: MeshSpec): string =>
  `| \`${spec.name}\` | \`${spec.capability}\` | ${spec.effect} | ${askedAbout(spec)} | ${yes(!spec.privileged)} | ${yes(spec.rehearses)} | ${yes(spec.grantable)} |`

test('the list of tools in docs/reference/mesh.md is the list in the code', () => {
  const text = readFileSync(new URL('../../docs/reference/mesh.md', import.meta.url), 'utf8')
  const rows = text.split('\n').filter((line) => /^\| `\w+` \| `[a-z.]+` \| (?:read|write) \|/.test(line))
  expect(rows).toEqual(meshSpecs.map(rowOf))
})

test('an agent accepts exactly the spec of a capability', () => {
  const onDevice = new Map(capabilitiesOn({}).map(({ capability, args }) => [capability, args]))
  expect([...onDevice.keys()].sort()).toEqual(meshSpecs.map(({ capability }) => capability).sort())
  for (const { capability, args } of meshSpecs) expect(onDevice.get(capability)).toBe(args)
})

/** Every module that is loaded with this one, from the root of the repository. */
function loadedWith(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found
  found.add(file)
  const text = readFileSync(file, 'utf8').replace(/^import type .*$/gm, '')
  for (const [, path] of text.matchAll(/^(?:import|\} from|export \* from)[^']*'(\.[^']+)'/gm))
    if (path !== undefined) loadedWith(join(dirname(file), path), found)
  return found
}

test('an agent loads nothing of the control plane', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const loaded = [...loadedWith(join(root, 'mesh/agent/main.ts'))].map((file) => relative(root, file))
  expect(loaded).toContain('mesh/specs/fs.ts')
  const foreign = loaded.filter(
    // Both ends speak by frames, and say their version.
    (file) =>
      !/^(?:domain|safety|mesh\/agent|mesh\/specs)\/|^mesh\/(?:paths|sign|frames)\.ts$|^package\.json$/.test(file),
  )
  expect(foreign).toEqual([])
})

describe('the control plane accepts less than a device', () => {
  const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
    schema.safeParse(value).success
  const letters = (count: number) => 'a'.repeat(count)

  test('content of fs.write: 100,000 characters of 1,048,576', () => {
    const { args, input } = specOf('fs.write')
    const write = (count: number) => ({ path: '/srv/x', content: letters(count) })
    expect([100_000, 100_001].map((count) => accepts(input, write(count)))).toEqual([true, false])
    expect([1_048_576, 1_048_577].map((count) => accepts(args, write(count)))).toEqual([true, false])
  })

  test('a message of git.commit: 3 to 2,000 characters of 1 to 5,000', () => {
    const { args, input } = specOf('git.commit')
    const commit = (count: number) => ({ path: '/srv/x', message: letters(count) })
    expect([2, 3, 2_000, 2_001].map((count) => accepts(input, commit(count)))).toEqual([false, true, true, false])
    expect([0, 1, 5_000, 5_001].map((count) => accepts(args, commit(count)))).toEqual([false, true, true, false])
  })

  test('files of git.commit: 100 of 200, 200 characters of 4,000', () => {
    const { args, input } = specOf('git.commit')
    const commit = (files: number, length: number) => ({
      path: '/srv/x',
      message: 'a message',
      files: Array.from({ length: files }, () => letters(length)),
    })
    expect([commit(100, 200), commit(101, 1), commit(1, 201)].map((each) => accepts(input, each))).toEqual([
      true,
      false,
      false,
    ])
    expect([commit(200, 4_000), commit(201, 1), commit(1, 4_001)].map((each) => accepts(args, each))).toEqual([
      true,
      false,
      false,
    ])
  })
})
