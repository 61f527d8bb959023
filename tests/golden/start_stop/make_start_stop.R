# Writes start_stop.json and the tables beside it: survSplit, tmerge, tt and landmark analyses of R's
# survival. Run in this folder. veteran and heart are the tables in the folder above.
suppressMessages(library(survival))
json<-function(x){
  if(is.data.frame(x)) x<-as.list(x)
  if(is.list(x)){
    parts<-vapply(x,json,"")
    if(is.null(names(x))) return(paste0("[",paste(parts,collapse=","),"]"))
    return(paste0("{",paste0('"',names(x),'":',parts,collapse=","),"}"))
  }
  if(is.factor(x)) x<-as.character(x)
  out<-if(is.character(x)) paste0('"',x,'"') else format(as.numeric(x),digits=17,trim=TRUE)
  out[is.na(x)]<-"null"
  if(length(out)==1&&is.null(attr(x,"list"))) out else paste0("[",paste(out,collapse=","),"]")
}
vec<-function(x) structure(x,list=TRUE)
table_of<-function(d) lapply(as.list(d),vec)
fit<-function(formula,data,cluster=NULL,...){
  args<-list(formula=formula,data=data,control=coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14),...)
  if(!is.null(cluster)) args$cluster<-data[[cluster]]
  f<-do.call(coxph,args)
  list(coef=as.list(setNames(as.numeric(coef(f)),names(coef(f)))),loglik=f$loglik[2],se=vec(sqrt(diag(if(is.null(f$naive.var)) f$var else f$naive.var))),
    robust_se=vec(if(is.null(f$naive.var)) numeric(0) else sqrt(diag(f$var))),n=f$n,nevent=f$nevent)
}
out<-list(R=R.version.string,survival=as.character(packageVersion("survival")))

# ---- survSplit
small<-data.frame(entry=c(0,2,5,0,3,1.5),time=c(10,5,12,3,4,9),event=c(1,0,1,1,0,2))
plain<-function(d){d$event<-as.numeric(as.character(d$event));d}
s<-survSplit(Surv(entry,time,event==1)~.,cbind(small,other=1:6),cut=c(3,5,10),episode="episode",id="row",start="entry",end="time",event="event")
out$split<-list(input=table_of(small),cut=vec(c(3,5,10)),entry=vec(s$entry),time=vec(s$time),event=vec(as.numeric(s$event)),episode=vec(s$episode),row=vec(s$row-1))
veteran<-read.csv("../veteran.csv"); heart<-read.csv("../heart.csv")
v2<-survSplit(Surv(time,event)~.,data=veteran,cut=c(90,180),episode="tgroup",id="id")
f<-fit(Surv(tstart,time,event)~trt+prior+karno:strata(tgroup),v2)
out$veteran_episodes<-list(n=nrow(v2),fit=f,tstart_sum=sum(v2$tstart),time_sum=sum(v2$time))

# ---- tmerge: every operation, and what lies outside
base<-data.frame(id=c(1,2,3),t0=c(0,2,0),fu=c(10,12,8),st=c(1,0,1))
long<-data.frame(id=c(1,1,1,2,2,2,3,3,9,1,3),t=c(-1,0,4,1,2,6,4,5,3,10,9),v=c(7,8,9,1,2,3,5,6,4,11,12))
m<-tmerge(base,base,id=id,tstart=t0,tstop=fu,died=event(fu,st))
one<-tmerge(m,long,id=id,value=tdc(t,v))
counts<-attr(one,"tcount")["value",]
m2<-tmerge(m,long,id=id,value=tdc(t,v),total=cumtdc(t,v),n=cumtdc(t),ev=event(t),code=event(t,v),nth=cumevent(t))
out$operations<-list(base=table_of(base),long=table_of(long),rows=table_of(m2[,c("id","tstart","tstop","died","value","total","n","ev","code","nth")]),
  count=as.list(counts))
# with ties: values of one time
ties<-data.frame(id=c(1,1,1,2,2),t=c(4,4,7,6,6),v=c(1,5,2,3,3))
mt<-tmerge(m,ties,id=id,value=tdc(t,v),total=cumtdc(t,v),nth=cumevent(t))
out$ties<-list(long=table_of(ties),rows=table_of(mt[,c("id","tstart","tstop","died","value","total","nth")]),
  tied=as.numeric(attr(tmerge(m,ties,id=id,value=tdc(t,v)),"tcount")["value","tied"]))
# with a gap in the follow-up
g0<-data.frame(id=1:2,x=c(1,2))
gaps<-data.frame(id=c(1,1,1,2),a=c(0,5,9,1),b=c(5,7,12,4))
mg<-tmerge(g0,gaps,id=id,tstart=a,tstop=b)
gl<-data.frame(id=c(1,1,1,1,1,1,1,1,2,2,2,2),t=c(-1,0,3,5,7,8,9,12,1,2,4,6),v=1:12)
mg1<-tmerge(mg,gl,id=id,value=tdc(t,v))
mg2<-tmerge(mg,gl,id=id,value=tdc(t,v),ev=event(t),n=cumtdc(t))
out$gaps<-list(base=table_of(gaps),long=table_of(gl),rows=table_of(mg2[,c("id","tstart","tstop","value","ev","n")]),count=as.list(attr(mg1,"tcount")["value",]))

# ---- tmerge: the examples of the vignette
temp<-subset(pbc,id<=312,select=c(id:sex,stage))
temp$sex<-as.character(temp$sex)
write.csv(temp,"pbc.csv",row.names=FALSE,na="")
write.csv(pbcseq[,c("id","day","ascites","bili","albumin","protime","alk.phos")],"pbcseq.csv",row.names=FALSE,na="")
pbc2<-tmerge(temp,temp,id=id,death=event(time,status))
pbc2<-tmerge(pbc2,pbcseq,id=id,ascites=tdc(day,ascites),bili=tdc(day,bili),albumin=tdc(day,albumin),protime=tdc(day,protime),alk.phos=tdc(day,alk.phos))
one<-tmerge(tmerge(temp,temp,id=id,death=event(time,status)),pbcseq,id=id,bili=tdc(day,bili))
out$pbcseq<-list(n=nrow(pbc2),head=table_of(head(pbc2[,c("id","tstart","tstop","death","bili","albumin")],20)),count=as.list(attr(one,"tcount")["bili",]),
  sums=list(tstart=sum(pbc2$tstart),tstop=sum(pbc2$tstop),bili=sum(pbc2$bili),albumin=sum(pbc2$albumin),protime=sum(pbc2$protime),alk=sum(pbc2$alk.phos,na.rm=TRUE),alk_missing=sum(is.na(pbc2$alk.phos)),ascites=sum(pbc2$ascites,na.rm=TRUE)),
  fit=fit(Surv(tstart,tstop,death==2)~log(bili)+log(protime),pbc2))
write.csv(cgd0[,c("id","treat","sex","age","steroids","futime",paste0("etime",1:7))],"cgd0.csv",row.names=FALSE,na="")
cg<-tmerge(cgd0[,1:13],cgd0,id=id,tstop=futime)
for(k in 1:7){cg$e<-NULL; cg<-eval(parse(text=sprintf("tmerge(cg,cgd0,id=id,infect=event(etime%d))",k)))}
cg<-tmerge(cg,cg,id=id,enum=cumtdc(tstart))
out$cgd<-list(n=nrow(cg),rows=table_of(cg[,c("id","tstart","tstop","infect","enum")]),fit=fit(Surv(tstart,tstop,infect)~treat+steroids+age+enum,cg,cluster="id"))
j<-jasa; j$subject<-seq_len(nrow(j))
td<-with(j,data.frame(subject=subject,futime=pmax(.5,as.numeric(fu.date-accept.dt)),
  txtime=as.numeric(ifelse(tx.date==fu.date,(tx.date-accept.dt)-.5,(tx.date-accept.dt))),fustat=fustat,age=age-48,
  year=as.numeric(accept.dt-as.Date("1967-10-01"))/365.25,surgery=surgery))
write.csv(td,"jasa.csv",row.names=FALSE,na="")
sd<-tmerge(td,td,id=subject,death=event(futime,fustat),trt=tdc(txtime))
out$jasa<-list(n=nrow(sd),trt=sum(sd$trt),fit=fit(Surv(tstart,tstop,death)~year+age+surgery+trt,sd,ties="breslow"))

# ---- landmarks: at each the people at risk, with the covariates of that time
lm_at<-function(s,w){
  d<-td[td$futime>s,]; d$trt<-as.numeric(!is.na(d$txtime)&d$txtime<=s); d$landmark<-s
  d$event<-ifelse(d$futime<=s+w,d$fustat,0); d$stop<-pmin(d$futime,s+w); d$start<-s; d
}
marks<-c(15,30,60,90)
st<-do.call(rbind,lapply(marks,lm_at,w=365))
out$landmark<-list(at=vec(marks),horizon=365,n=nrow(st),events=sum(st$event),
  stacked=fit(Surv(start,stop,event)~age+surgery+trt+strata(landmark),st,cluster="subject",ties="breslow"),
  unstratified=fit(Surv(start,stop,event)~age+surgery+trt+landmark,st,cluster="subject",ties="breslow"),
  single=fit(Surv(stop-start,event)~age+surgery+trt,lm_at(30,1e9),ties="breslow"))

# ---- tt
tt<-function(formula,data,f,ties) fit(formula,data,tt=f,ties=ties)
lg<-function(x,t,...) x*log(t+20); idt<-function(x,t,...) x*t/100
step<-function(x,t,...) cbind(x*(t>90&t<=180),x*(t>180))
out$tt<-list()
for(ties in c("breslow","efron")) out$tt[[ties]]<-list(
  log=tt(Surv(time,event)~trt+prior+karno+tt(karno),veteran,lg,ties),
  plain_log=tt(Surv(time,event)~karno+tt(karno),veteran,function(x,t,...) x*log(t),ties),
  identity=tt(Surv(time,event)~trt+karno+tt(trt),veteran,idt,ties),
  step=tt(Surv(time,event)~trt+karno+tt(karno),veteran,step,ties),
  strata=tt(Surv(time,event)~karno+tt(karno)+strata(stratum),veteran,lg,ties),
  late=tt(Surv(start,stop,event)~age+transplant+tt(age),heart,idt,ties))
writeLines(json(out),"start_stop.json")
