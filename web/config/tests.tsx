import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { formatSpan } from '../../domain/format.ts'
import type { ModelList } from '../../domain/model-list.ts'
import type { WebhookTest } from '../../domain/setting-row.ts'
import { describePassport } from '../../domain/status-words.ts'
import { ask, useAsk } from '../api.ts'
import { CopyCommand } from '../copy.tsx'
import { Inert } from '../inert.tsx'
import { Mark } from '../marks.tsx'
import { Failed } from '../page-frame.tsx'
import { useNow } from '../time.ts'

/** Sends a test message to the address of a webhook. */
export function TestWebhook({ setting, refused }: { setting: string; refused: string | null }) {
  const [, name = ''] = setting.split('.')
  const command = `nightshift config test webhook.${name}`
  return <SendTest to={`webhook.${name}`} path={`/webhooks/${name}/test`} refused={refused} command={command} saysWhy />
}

type TestProps = {
  /** The name of the receiver, for screen readers. */
  to: string
  path: string
  refused: string | null
  command: string
  /** True if the reason of a refusal is shown beside the button. */
  saysWhy?: boolean
  children?: ReactNode
}

/** Shows a button that sends a test message, the receiver's response, and the command for it. */
export function SendTest({ to, path, refused, command, saysWhy = false, children }: TestProps) {
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => ask<WebhookTest>(path, { method: 'POST' }),
  })
  const state = isPending ? 'Waiting for the receiver…' : data && <TestOutcome test={data} />
  return (
    <div className="stack tight">
      <div className="row">
        <button
          type="button"
          disabled={refused !== null || isPending}
          title={refused ?? undefined}
          onClick={() => mutate()}
        >
          Send a test message
          <span className="visually-hidden"> to {to}</span>
        </button>
        {children}
        <div role="status">{(saysWhy && refused) || state}</div>
      </div>
      {error !== null && <Failed error={error} />}
      <CopyCommand command={command} label="the command" />
    </div>
  )
}

const looks = {
  sent: { shape: 'check', tone: 'proved', word: 'arrived' },
  wait: { shape: 'bar', tone: 'ink', word: 'asks to wait' },
  retry: { shape: 'cross', tone: 'ink', word: 'not now' },
  drop: { shape: 'cross', tone: 'broken', word: 'refused' },
} as const

/** Shows a receiver's response to a test message. */
function TestOutcome({ test: { outcome, detail, said } }: { test: WebhookTest }) {
  return (
    <span className="wraps">
      <Mark {...looks[outcome]} />: <Inert text={detail} />
      {said && (
        <>
          , and said: <code className="small">{<Inert text={said} />}</code>
        </>
      )}
    </span>
  )
}

/**
 * Shows the grade of each model, and how to measure it. The key of a model is in the worker's
 * environment, so this server cannot query the model.
 */
export function TestModel() {
  const now = useNow()
  const { data } = useAsk<ModelList>(['models'], '/models')
  return (
    <div className="stack tight said">
      <p>
        Test a model on the worker’s machine, where the key of the model is. The command below asks sixteen short
        questions and stores the grade.
      </p>
      <CopyCommand command="nightshift model check" label="the command" />
      {data?.items.length === 0 && <p className="soft">No worker has reported a model yet.</p>}
      <ul>
        {data?.items.map(({ name, server, model, passport }) => (
          <li key={name} className="wraps">
            <Inert as="strong" text={name} /> <Inert text={`${model} at ${server}`} />:{' '}
            {passport ? (
              <>
                <Inert text={describePassport(passport)} />
                <span className="soft"> · measured {formatSpan(now - Date.parse(passport.measuredAt))} ago</span>
              </>
            ) : (
              'not measured'
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}
