/** Files that a program uses and does not print: known by place and name. */

type OwnKind = 'credential' | 'socket' | 'settings' | 'compose' | 'certificate' | 'runtime'

/**
 * Only the administrator writes there, and the names are of keys and certificates: nothing else is
 * tried as one.
 */
const credentials =
  /^\/(?:etc|var\/lib|run\/secrets|var\/run\/secrets)\/[\w./-]+(?:\.(?:pem|key|crt|cert|cer|keyring)|\/(?:tls|ca)\.\w+)$/
const sockets = /^\/(?:var\/)?run\/[\w./-]+\.(?:asok|sock)$/
const settings = /^\/etc\/[\w./-]+\.(?:ya?ml|conf|toml)$/
const composeFiles = /^(?:[\w./-]*\/)?(?:[\w-]+[.-])?(?:docker-)?compose[\w.-]*\.ya?ml$/

/** A path and no address: names of stores have a colon. */
const certificates = /^(?!\/+(?:dev|proc)\b)(?!.*\/private\/)[\w./][\w@+./-]*\.(?:crt|pem|cer|cert|csr|crl)$/
const runtimes =
  /^(?:unix:\/\/)?\/(?:var\/)?run\/(?:containerd\/containerd|k3s\/containerd\/containerd|crio\/crio|cri-dockerd|dockershim)\.sock$/

/** Why this is no such file of the program; null where it is. */
export function whyNotOwn(kind: OwnKind, text: string, program: string): string | null {
  if (text.includes('..')) return 'leads up'
  switch (kind) {
    case 'credential':
      return credentials.test(text) ? null : 'is no key or certificate in a place of the administrator'
    case 'socket':
      return sockets.test(text) && text.split('/').includes(program) ? null : 'is no socket of its own service'
    case 'settings':
      return settings.test(text) && text.includes(program.replace(/ctl$/, ''))
        ? null
        : 'is not its own settings below /etc'
    case 'certificate':
      return certificates.test(text) ? null : 'is no plain path of a certificate'
    case 'runtime':
      return runtimes.test(text) ? null : 'is no socket of a container runtime'
    case 'compose':
      return composeFiles.test(text) ? null : 'is not called as a file of compose is'
  }
}
