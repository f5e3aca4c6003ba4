import { z } from 'zod'
import type { DeviceCapability } from '../capability.ts'
import { containerName, containerOf } from '../container.ts'
import { apart, type Engine, lacksEngine, open } from '../engine.ts'
import { collect } from '../output.ts'
import { answered } from '../refused.ts'

const args = z.strictObject({
  container: containerName,
  tail: z.number().int().min(1).max(5_000).default(200),
  since_seconds: z.number().int().min(1).max(2_592_000).optional(),
  /** Goes on listening for as long; without it the answer is what there is. */
  follow_seconds: z.number().int().min(1).max(3_600).optional(),
})

/**
 * The last lines of a container, both outputs as they came: `{ container, id, output }`. Each line is emitted as it comes. What was read
 * until a deadline or cancel is kept.
 */
export const dockerLogs = (engine: Engine): DeviceCapability<z.infer<typeof args>> => ({
  capability: 'docker.container.logs',
  args,
  lacks: () => lacksEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
  run: ({ container, tail, since_seconds, follow_seconds }, { manifest, signal, emit }) =>
    answered(signal, async () => {
      const found = await containerOf(engine, container, signal)
      const query = new URLSearchParams({ stdout: 'true', stderr: 'true', tail: String(tail) })
      if (since_seconds !== undefined) query.set('since', String(Math.floor(Date.now() / 1_000) - since_seconds))
      if (follow_seconds !== undefined) query.set('follow', 'true')
      const body = await open(engine, 'GET', `/containers/${found.id}/logs?${query}`, signal)
      const enough = setTimeout(() => body.destroy(), (follow_seconds ?? 3_600) * 1_000)
      const output = collect(manifest.limits.output_bytes, emit)
      try {
        for await (const { bytes } of apart(body, found.terminal)) if (!output.take('stdout', bytes)) break
      } catch (error) {
        // Ended by us: what was heard until then is the answer.
        if (follow_seconds === undefined || signal.aborted || !body.destroyed) throw error
      } finally {
        clearTimeout(enough)
        body.destroy()
        output.end()
      }
      const result = { container: found.name, id: found.id.slice(0, 12), output: output.text('stdout') }
      return { ok: true, result, truncated: output.truncated }
    }),
})
