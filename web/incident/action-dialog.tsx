import type { ReactNode } from 'react'
import type { Incident } from '../../domain/incident.ts'
import { ask, queryClient } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { forgetDrafts } from '../draft.ts'
import { TextArea } from '../fields.tsx'

export type Props = { incident: Incident; refused: string | null }
type DialogProps = Props & {
  button: string
  path: string
  title: string
  body?(): unknown
  children: ReactNode
}

/** A button for something that is done to this incident, with the dialog that asks what it takes. */
export function ActionDialog({ incident, refused, button, path, title, body, children }: DialogProps) {
  const run = async () => {
    await ask(`/incidents/${incident.id}/${path}`, { method: 'POST', body: body?.() })
    forgetDrafts(incident.id)
    for (const key of ['incident', 'surroundings', 'events']) {
      void queryClient.invalidateQueries({ queryKey: [key, incident.id] })
    }
    void queryClient.invalidateQueries({ queryKey: ['expectations'] })
  }
  return (
    <Confirm button={button} label="this incident" title={title} refused={refused} run={run}>
      {children}
    </Confirm>
  )
}

type TextProps = { id: string; label: string; value: string; required?: boolean; onChange(value: string): void }

/** What a person writes for others to read. */
export function PersonText({ required = true, ...rest }: TextProps) {
  return <TextArea rows={3} required={required} minLength={3} maxLength={required ? 2000 : 1000} {...rest} />
}
