import { incidentOfButton, isIncidentButton } from '../../clients/slack/button.ts'
import type { SlackClient } from '../../clients/slack/client.ts'
import { incidentById, NotAllowedError } from '../../db/incidents.ts'
import { operatorBySlackUser } from '../../db/operators.ts'
import { giveBack } from '../../db/owners.ts'
import type { Person } from '../../db/taker.ts'
import type { Incident } from '../../domain/incident.ts'
import { permissions } from '../../domain/operator.ts'
import type { ApiDeps } from '../deps.ts'
import type { Context } from '../http/context.ts'
import { takeForPerson } from '../routes/incident-endings.ts'
import { answerPrivately, recordSuspicion } from './answers.ts'
import type { OwnerPress } from './payload.ts'

/**
 * What comes of Take and Give back. The member is looked up as the person they are here and needs what the same takes at every
 * door; the result is shown to them alone, and the thread follows the rows.
 */
export async function pressOwner(deps: ApiDeps, slack: SlackClient, c: Context, asked: OwnerPress): Promise<void> {
  const incident = await incidentOf(deps, slack, asked)
  const url = incident && `${deps.publicUrl?.replace(/\/+$/, '')}/incidents/${incident.id}`
  const say = (text: string) => answerPrivately(deps, slack, asked, text, { url, word: 'Open the incident' })
  if (!incident) {
    const event = { code: 'FOREIGN_BUTTON', subject: asked.user, detail: 'a button that was not made here' }
    await recordSuspicion(deps, c, null, event)
    return await say('This button is not one of mine, or it is from another time. Nothing was done.')
  }
  const operator = await operatorBySlackUser(deps.db, asked.user)
  if (!operator) {
    return await say(
      `Nothing was done: I do not know who you are here. Ask an admin for: nightshift operators set NAME --slack ${asked.user}`,
    )
  }
  if (operator.disabledAt !== null) return await say(`Nothing was done: ${operator.name} is disabled.`)
  if (!permissions[operator.role].includes('manage_incident')) {
    return await say(`Nothing was done: ${operator.name} (${operator.role}) lacks the permission manage_incident.`)
  }
  const by = { operatorId: operator.id, actor: `user:${operator.name}`, name: operator.name }
  await say(asked.action === 'take' ? await take(deps, incident, by) : await release(deps, incident, by))
}

/** The incident that a button names, if we made the button for it and for what it does. */
async function incidentOf({ db }: ApiDeps, { settings }: SlackClient, asked: OwnerPress): Promise<Incident | null> {
  const id = incidentOfButton(asked.button)
  if (id === null || !isIncidentButton(settings.signingSecret, id, asked.action, asked.button)) return null
  return await incidentById(db, id)
}

async function take(deps: ApiDeps, incident: Incident, by: Person): Promise<string> {
  if (incident.owner?.id === by.operatorId) return 'You have it already.'
  try {
    return (await takeForPerson(deps, incident.id, by))
      ? 'It is yours: no reminder and no attempt of the agent while you have it.'
      : 'Asked for: its run ends first, then it is yours.'
  } catch (error) {
    if (!(error instanceof NotAllowedError)) throw error
    return `Nothing was done: it is ${error.status.replaceAll('_', ' ')}.`
  }
}

async function release({ db }: ApiDeps, incident: Incident, by: Person): Promise<string> {
  const given = await db.transaction().execute((trx) => giveBack(trx, incident.id, by))
  return given ? 'It is given back.' : 'Nothing was done: nobody has it.'
}
