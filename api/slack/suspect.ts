import { suspectSlackRequest } from '../../db/slack/requests.ts'
import type { ApiDeps } from '../deps.ts'
import { failedAuthentications, networkOf } from '../http/authenticate.ts'
import type { Context } from '../http/context.ts'
import { getCallerAddress } from '../http/context.ts'

/** Writes down what came to Slack's door and looks like an attack. */
export async function suspect(
  { db }: ApiDeps,
  c: Context,
  approvalId: string | null,
  event: { code: string; subject: string; detail: string },
): Promise<void> {
  const address = getCallerAddress(c)
  await suspectSlackRequest(db, approvalId, { ...event, address, network: networkOf(address) }, failedAuthentications)
}
