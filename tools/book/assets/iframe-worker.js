// Browsers refuse workers on pages from the file system. There, the worker of the search runs in a hidden frame.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.frame.srcdoc = `<script>postMessage = data => frameElement.answer(data)</script><script src="${url}"></script>`;
      this.frame.answer = data => this.dispatchEvent(new MessageEvent("message", {data}));
      this.started = new Promise(resolve => this.frame.addEventListener("load", resolve, {once: true}));
      document.body.append(this.frame);
    }

    async postMessage(data) {
      await this.started;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
    }
  };
