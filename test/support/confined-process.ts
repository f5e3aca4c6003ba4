import { createInterface } from 'node:readline'
import { manifest } from '../../domain/mesh.ts'
import { keepConfinement } from '../../mesh/agent/confine.ts'
import { runProgram } from '../../mesh/agent/run.ts'
import { nothingHidden } from '../../mesh/agent/sandboxes.ts'
import { aManifest, keys, newRequestId } from './running-agent.ts'

/**
 * `confined-process.ts UID SANDBOX`: runs each line of its input, a bash text as JSON, as a look of
 * that user is run, and answers it by a line: `{ sandbox, lack, exitCode, stdout, stderr }`. What
 * changes meanwhile is told as `{ said }`.
 */
const { limits } = manifest.parse(aManifest(keys()))
const [uid, sandbox] = [Number(process.argv[2]), process.argv[3] as 'bwrap' | 'unshare']
process.setgroups?.([uid])
process.setgid?.(uid)
process.setuid?.(uid)
const tell = (value: object) => console.log(JSON.stringify(value))
const confinement = await keepConfinement(nothingHidden, (said) => tell({ said }), { everyMs: 100, order: [sandbox] })
for await (const line of createInterface({ input: process.stdin })) {
  const runner = { limits, confinement, marker: newRequestId(), signal: AbortSignal.timeout(120_000) }
  const argv = ['/bin/bash', '--noprofile', '--norc', '-c', JSON.parse(line) as string]
  const ran = await runProgram(argv, { confine: 'read' }, runner).catch((error: Error) => ({ error: error.message }))
  tell({ sandbox: confinement.sandbox, lack: confinement.lack, ...ran })
}
confinement.close()
process.exit(0)
