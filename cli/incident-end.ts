import type { IncidentEvent } from '../domain/event.ts'
import { type ApiClient, type ApiIncident, readIncident } from './core.ts'
import { CommandFailed } from './exit-code.ts'
import { followIncident } from './stream.ts'

/** Follows an incident to its end. The command then ends with the exit code of that end: only a resolution is a success. */
export async function followToEnd(
  api: ApiClient,
  id: string,
  each: (event: IncidentEvent) => void | Promise<void>,
  signal?: AbortSignal,
): Promise<ApiIncident> {
  for await (const event of followIncident(api, id, { signal, onLost: () => undefined })) await each(event)
  const incident = await readIncident(api, id)
  if (!signal?.aborted && incident.status !== 'resolved') {
    throw new CommandFailed('unresolved', `${id} ended ${incident.status}.`)
  }
  return incident
}
