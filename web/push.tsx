import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { PushDevice } from '../domain/push.ts'
import { ask, readAgain, useAsk } from './api.ts'
import { Inert } from './inert.tsx'
import { Failed, Section } from './page-frame.tsx'
import { useMissing } from './permissions.ts'
import { formatMoment } from './time.ts'

/**
 * Shows approvals as notifications of the browser, which are offered when an approval waits, and
 * never enabled automatically.
 */

const dismissedKey = 'nightshift.push'
const pushKey = ['push']
const worker = '/push-worker.js'

type PushState = { publicKey: string; devices: PushDevice[] }

/**
 * Whether notifications are possible. Pages over plain http, and browsers without the Push API, do
 * not support them.
 */
const isSupported = 'serviceWorker' in navigator && 'PushManager' in globalThis && 'Notification' in globalThis

function usePush() {
  const isDecider = useMissing('decide') === null
  const known = useAsk<PushState>(pushKey, '/push', { enabled: isSupported && isDecider })
  const own = useQuery({
    queryKey: ['push', 'here'],
    enabled: isSupported && isDecider,
    queryFn: async () => {
      const registration = await navigator.serviceWorker.getRegistration(worker)
      const subscription = await registration?.pushManager.getSubscription()
      return {
        isOn: Boolean(subscription) && Notification.permission === 'granted',
        permission: Notification.permission,
      }
    },
  })
  return { known, here: own.data ?? null, isDecider }
}

async function turnOn(): Promise<void> {
  const permission = await Notification.requestPermission()
  if (permission !== 'granted')
    throw new Error('This browser blocks notifications. Allow them for this site in its settings, and try again.')
  const { publicKey } = await ask<PushState>('/push')
  await navigator.serviceWorker.register(worker)
  const { pushManager } = await navigator.serviceWorker.ready
  const subscription = await pushManager
    .subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })
    .catch((error: Error) => {
      throw new Error(`The browser's push service refused the subscription: ${error.message}`)
    })
  const { endpoint, keys } = subscription.toJSON()
  await ask('/push/subscriptions', { method: 'POST', body: { endpoint, keys, name: nameBrowser() } })
}

/** Returns a name such as `Firefox on Android`. */
function nameBrowser(): string {
  const agent = navigator.userAgent
  const find = (names: [RegExp, string][], other: string) => names.find(([words]) => words.test(agent))?.[1] ?? other
  const browser = find(
    [
      [/Edg/, 'Edge'],
      [/Firefox|FxiOS/, 'Firefox'],
      [/Chrom|CriOS/, 'Chrome'],
      [/Safari/, 'Safari'],
    ],
    'a browser',
  )
  const system = find(
    [
      [/Android/, 'Android'],
      [/iPhone|iPad/, 'iOS'],
      [/Mac/, 'macOS'],
      [/Windows/, 'Windows'],
    ],
    'Linux',
  )
  return `${browser} on ${system}`
}

const refresh = () => readAgain(pushKey)

/**
 * Ends the notifications of this browser at sign-out, because another person may use this browser
 * next.
 */
export async function unsubscribeHere(): Promise<void> {
  if (!isSupported) return
  const registration = await navigator.serviceWorker.getRegistration(worker)
  const subscription = await registration?.pushManager.getSubscription()
  await subscription?.unsubscribe()
}

/**
 * Shows one line with the offer when an approval waits and this browser has no notifications. The
 * answer `Not now` is stored.
 */
export function PushOffer() {
  const { here, isDecider } = usePush()
  const [isDismissed, setDismissed] = useState(() => localStorage.getItem(dismissedKey) === 'not now')
  const { mutate, error, isPending } = useMutation({ mutationFn: turnOn, onSettled: refresh })
  if (!isDecider || !here || here.isOn || here.permission === 'denied' || isDismissed) return null
  const dismiss = () => {
    localStorage.setItem(dismissedKey, 'not now')
    setDismissed(true)
  }
  return (
    <div className="said row between offer">
      <p>Get a notification on this device when an approval waits for you?</p>
      <span className="row">
        <button type="button" disabled={isPending} onClick={() => mutate()}>
          Turn on
        </button>
        <button type="button" className="bare" onClick={dismiss}>
          Not now
        </button>
      </span>
      {error !== null && <Failed error={error} />}
    </div>
  )
}

/** Lists the browsers of this person that get approvals, with a switch for this browser. */
export function PushDevices() {
  const { known, here, isDecider } = usePush()
  const on = useMutation({ mutationFn: turnOn, onSettled: refresh })
  if (!isDecider) return null
  return (
    <Section className="stack tight" id="push-title" title="Notifications">
      {!isSupported && (
        <p className="soft">
          This browser offers no web push here. Web push needs https, or a page opened on localhost.
        </p>
      )}
      {known.data && known.data.devices.length > 0 && (
        <ul className="stack tight">
          {known.data.devices.map((device) => (
            <Device key={device.id} device={device} />
          ))}
        </ul>
      )}
      {here?.permission === 'denied' && <p className="soft">This browser blocks notifications from this site.</p>}
      {here && !here.isOn && here.permission !== 'denied' && (
        <p className="row">
          <button type="button" disabled={on.isPending} onClick={() => on.mutate()}>
            Turn on for this device
          </button>
          <span className="soft small">
            You get a message, and reminders, when an approval that you may decide is waiting.
          </span>
        </p>
      )}
      {on.error !== null && <Failed error={on.error} />}
    </Section>
  )
}

function Device({ device: { id, name, createdAt, lastSentAt } }: { device: PushDevice }) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/push/subscriptions/${id}/remove`, { method: 'POST' }),
    onSettled: refresh,
  })
  return (
    <li className="row">
      <Inert text={name} />
      <span className="soft small">
        since {formatMoment(createdAt)}
        {lastSentAt ? `, last message ${formatMoment(lastSentAt)}` : ', no message yet'}
      </span>
      <button type="button" disabled={isPending} onClick={() => mutate()}>
        Remove<span className="visually-hidden"> {name}</span>
      </button>
      {error !== null && <Failed error={error} />}
    </li>
  )
}
