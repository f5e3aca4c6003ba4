import { z } from 'zod'
import { SourceError } from '../kind.ts'

/** The envelope of every answer of Prometheus' HTTP API. */
const envelope = z.looseObject({ status: z.string(), data: z.unknown(), error: z.string().optional() })

/** What is in it. Throws SourceError where the server refused, or where it is another API. */
export function readData(answer: unknown): unknown {
  const parsed = envelope.safeParse(answer)
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered something that is not of the Prometheus API')
  if (parsed.data.status !== 'success')
    throw new SourceError('REJECTED', (parsed.data.error ?? 'it refused the query').slice(0, 300))
  return parsed.data.data
}
