import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { eventually } from '../../support/directory.ts'
import { eventAbout, putCrashLoop, useCluster } from './site.ts'

/** Roads on which a secret comes to a pod's log or status, and must end there. */

const { stage, read, probe } = useCluster()

const { privateKey: pem } = generateKeyPairSync('rsa', {
  modulusLength: 2_048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
const key = pem.trim().split('\n')
const isSaid = (said: string) => key.slice(1, -1).filter((line) => said.includes(line.slice(0, 16)))

test.each([
  ['all lines', undefined],
  ['lines that hold a part of it', (key[5] ?? '').slice(0, 12)],
])('a private key that a program printed over many lines is in no answer that asks for %s', async (_, contains) => {
  putCrashLoop(stage.cluster)
  const lines = key.map((line, at) => `2026-11-21T11:59:${String(at).padStart(2, '0')}Z ${line}`)
  stage.cluster.logs.set('shop/web-7fd8966c8d-8cjqz', lines.join('\n'))
  const { summary, whole } = await read('kubernetes_logs', { namespace: 'shop', name: 'web', contains })
  expect(isSaid(JSON.stringify(summary) + whole)).toEqual([])
  if (contains) expect(summary.lines).toBe(0)
})

test('a key of which the last lines of a crash are a part is in no diagnosis', async () => {
  putCrashLoop(stage.cluster)
  stage.cluster.logs.set('shop/web-7fd8966c8d-8cjqz previous', key.slice(4, 9).join('\n'))
  const { summary, whole } = await read('pod_diagnosis', { namespace: 'shop', name: 'web' })
  expect(summary.lastLines).toHaveLength(2)
  expect(isSaid(JSON.stringify(summary) + whole)).toEqual([])
})

test('a secret whose name contains an invisible character is in no event and no condition', async () => {
  putCrashLoop(stage.cluster)
  const message = 'exit: pass\u200bword=planted-S3cret9x db_to\u2060ken: planted-S3cret9x'
  stage.cluster.put('Event', eventAbout('Pod', 'shop', 'web-7fd8966c8d-8cjqz', { reason: 'Failed', message }))
  stage.cluster.logs.set('shop/web-7fd8966c8d-8cjqz previous', message)
  for (const [tool, args] of [
    ['kubernetes_events', { namespace: 'shop' }],
    ['pod_diagnosis', { namespace: 'shop', name: 'web' }],
  ] as const) {
    const { summary, whole } = await read(tool, args)
    expect(JSON.stringify(summary)).toContain('[redacted:password]')
    expect(JSON.stringify(summary) + whole).not.toContain('planted')
  }
})

test('the credential of the source itself is hidden if an object of the list, or of the watch, repeats it', async () => {
  const evicted = (name: string) => ({
    metadata: {
      name,
      namespace: 'shop',
      ownerReferences: [
        {
          kind: 'ReplicaSet',
          name: 'web-7fd8966c8d',
          uid: 'uid-of-ReplicaSet-web-7fd8966c8d',
          controller: true,
        },
      ],
    },
    spec: {},
    status: { phase: 'Failed', reason: 'Evicted', message: 'sent token-of-a-test on' },
  })
  putCrashLoop(stage.cluster)
  stage.cluster.put('Pod', evicted('listed'))
  await probe()
  stage.cluster.put('Pod', evicted('watched'))
  await eventually('3 pods;', async () => (await probe()).includes('3 pods;'))
  const { summary, whole } = await read('pod_diagnosis', { namespace: 'shop', name: 'web' })
  expect(summary.failedPods).toHaveLength(2)
  expect(JSON.stringify(summary) + whole).not.toContain('token-of-a-test')
})
