/* Browsers start no workers for pages that are read from disk. There, search runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<body></body>"
      this.ready = new Promise((done) => {
        this.frame.addEventListener("load", () => {
          const inside = this.frame.contentWindow
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
          const script = inside.document.createElement("script")
          script.src = url
          script.addEventListener("load", () => done(inside))
          inside.document.body.append(script)
        }, { once: true })
      })
      document.body.append(this.frame)
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
